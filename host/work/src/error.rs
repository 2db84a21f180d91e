//! Errors of a guest's host calls: either the guest receives a typed error, or
//! the call ends.

use assurance_core::domain::job::JobStatus;
use assurance_store as store;

/// Text for the author of an area whose read-only route writes.
pub(super) const READ_ONLY: &str = "the route is read-only; set `writes` to true in the manifest";

/// Error of a guest's host call: a typed error for the guest, or the end of the
/// call.
#[derive(Debug, thiserror::Error)]
pub enum HostCallError<E: std::error::Error> {
    /// The guest receives this error and goes on.
    #[error(transparent)]
    Refused(E),
    /// The guest's call ends: it must run again, or the database is
    /// unavailable.
    #[error("the call ends: {0}")]
    Abort(store::Error),
}

impl<E: std::error::Error> From<store::Error> for HostCallError<E> {
    fn from(error: store::Error) -> Self {
        Self::Abort(error)
    }
}

/// Reason why a host call on documents is refused, as the guest receives it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The collection has no document with this id.
    #[error("no such document")]
    NotFound,
    /// A document with the id of the new one exists already.
    #[error("the document exists already")]
    AlreadyExists,
    /// The document has this version, not the expected one.
    #[error("the document has version {0}")]
    VersionConflict(u64),
    /// Another document has the same values in the unique index with these
    /// fields.
    #[error("another document has the same {}", .0.join(", "))]
    UniqueConflict(Vec<String>),
    /// The page cursor was altered, or belongs to another query.
    #[error("the cursor does not belong to this query")]
    InvalidCursor,
    /// The area used the interface wrongly; the text is for its author.
    #[error("misuse: {0}")]
    Misuse(String),
    /// The call's limit of documents or bytes is exceeded.
    #[error("the call's limit is used up")]
    LimitExceeded,
}

/// Reason why a host call on blobs is refused, as the guest receives it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// No blob has this name.
    #[error("no such blob")]
    NotFound,
    /// The blob is too large, or the call's limit of bytes is exceeded.
    #[error("the call's limit is used up")]
    LimitExceeded,
    /// The blob's name is not 1 to 200 characters of `A-Za-z0-9._/-`.
    #[error("invalid blob name: use 1 to 200 characters of A-Z, a-z, 0-9 and ._/-")]
    InvalidName,
    /// The blob store is unavailable.
    #[error("the blob store is unavailable")]
    Unavailable,
    /// The guest wrote a blob on a route that is read-only.
    #[error("a blob was written on a read-only route")]
    ReadOnly,
    /// This other area does not share its blobs with the guest's area.
    #[error("area {0:?} does not share its blobs with this one")]
    NotShared(String),
}

/// Reason why a host call on secrets is refused, as the guest receives it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// No secret has this name.
    #[error("no such secret")]
    NotFound,
    /// The secret's name is not 1 to 200 characters of `A-Za-z0-9._/-`.
    #[error("invalid secret name: use 1 to 200 characters of A-Z, a-z, 0-9 and ._/-")]
    InvalidName,
    /// The secret is too large, there are too many, or the route is read-only.
    #[error("the call's limit is used up")]
    LimitExceeded,
}

/// Reason why a job's request does not send a secret to another service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendSecretError {
    /// No secret has this name.
    #[error("no such secret")]
    NotFound,
    /// The secret is bound to this other origin, to which it was first sent.
    #[error(
        "the secret is sent to {0} only, where it was first sent to; \
         store it again to send it elsewhere"
    )]
    OtherOrigin(String),
    /// Another version of the area stored the secret and has not sent it.
    #[error(
        "another version of the area stored the secret and never sent it; \
         store it again to send it with this version"
    )]
    OtherComponent,
    /// The job step has an open transaction, whose rollback could undo the
    /// binding of the secret to its origin.
    #[error(
        "a secret is not sent for the first time in a step that has queried its own writes; \
         send it in a step of its own (`continue`)"
    )]
    WrittenBefore,
}

/// Reason why a signed link is not created, as the guest receives it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignedLinkError {
    /// The area used the interface wrongly; the text is for its author.
    #[error("misuse: {0}")]
    Misuse(String),
    /// The link must be bound to a user or session, but the call has none.
    #[error("the call has no session to bind the link to")]
    NoSession,
}

/// Reason why a host call on the workspace's job queue is refused, as the guest
/// receives it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// The workspace has no such job.
    #[error("no such job")]
    NotFound,
    /// The job's status does not allow the requested change.
    #[error("the job is {}", .0.as_str())]
    WrongStatus(JobStatus),
    /// Another job with the same kind and dedupe key waits or runs.
    #[error("another job with the same kind and dedupe key waits or runs")]
    Superseded,
    /// The job is an event delivery, which cannot be cancelled.
    #[error("an event delivery cannot be cancelled")]
    NotCancellable,
    /// The page cursor was altered, or belongs to another filter of jobs.
    #[error("the cursor does not belong to this filter")]
    InvalidCursor,
    /// The area used the interface wrongly; the text is for its author.
    #[error("misuse: {0}")]
    Misuse(String),
}

/// Reason why a host call on memberships is refused, as the guest receives it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// No user has this id.
    #[error("no such user")]
    NoSuchUser,
    /// The area used the interface wrongly; the text is for its author.
    #[error("misuse: {0}")]
    Misuse(String),
}

/// Reason why an event is not published or a job not enqueued, as the guest
/// receives it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishOrEnqueueError {
    /// The area used the interface wrongly; the text is for its author.
    #[error("misuse: {0}")]
    Misuse(String),
    /// The call's limit of jobs, events or bytes is exceeded, or a job's area
    /// has a full queue.
    #[error("the call's limit is used up")]
    LimitExceeded,
}
