//! Why a guest's wish is not granted: either the guest is told, with a typed
//! error, or the call ends.

use crate::domain::job::Status;
use crate::store;

/// A wish that failed.
#[derive(Debug, thiserror::Error)]
pub enum Fault<E: std::error::Error> {
    /// The guest is told.
    #[error(transparent)]
    Refused(E),
    /// The call ends: to be run again, or because the store is away.
    #[error("the call ends: {0}")]
    Abort(store::Error),
}

impl<E: std::error::Error> From<store::Error> for Fault<E> {
    fn from(error: store::Error) -> Self {
        Self::Abort(error)
    }
}

/// What a guest is told about documents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// No document of that id.
    #[error("no such document")]
    NotFound,
    /// A document of that id exists already.
    #[error("the document exists already")]
    AlreadyExists,
    /// The document is at another version; this one.
    #[error("the document is at version {0}")]
    VersionConflict(u64),
    /// Another document has these values in a unique index: its fields.
    #[error("another document has the same {}", .0.join(", "))]
    UniqueConflict(Vec<String>),
    /// The cursor was altered, or belongs to another query.
    #[error("the cursor is not one of this query")]
    InvalidCursor,
    /// A mistake in the guest; the text is for its author.
    #[error("misuse: {0}")]
    Misuse(String),
    /// The call's limit of documents or bytes is used up.
    #[error("the call's limit is used up")]
    LimitExceeded,
}

/// What a guest is told about blobs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// No blob of that name.
    #[error("no such blob")]
    NotFound,
    /// Too large, or too many.
    #[error("the call's limit is used up")]
    LimitExceeded,
    /// Not 1 to 200 of `A-Za-z0-9._/-`.
    #[error("not a blob's name")]
    InvalidName,
    /// The blob store is away.
    #[error("the blob store is away")]
    Unavailable,
    /// A write on a read-only route.
    #[error("a blob was written on a route that writes nothing")]
    ReadOnly,
    /// Another area's, which keeps its blobs to itself.
    #[error("area {0:?} does not share its blobs with this one")]
    NotShared(String),
}

/// What a guest is told about secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// No secret of that name.
    #[error("no such secret")]
    NotFound,
    /// Not a name.
    #[error("not a secret's name")]
    InvalidName,
    /// Too large, or too many; or a write on a read-only route.
    #[error("the call's limit is used up")]
    LimitExceeded,
}

/// Why a secret is not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendSecretError {
    /// No secret of that name.
    #[error("no such secret")]
    NotFound,
    /// The secret was sent to another origin before; this one.
    #[error(
        "the secret is sent to {0} only, where it was first sent to; \
         store it again to send it elsewhere"
    )]
    OtherOrigin(String),
    /// Another component stored the secret and has not sent it.
    #[error(
        "another version of the area stored the secret and never sent it; \
         store it again to send it with this version"
    )]
    OtherComponent,
    /// The step's transaction could still undo the binding to the origin.
    #[error(
        "a secret is not sent for the first time in a step that has queried its own writes; \
         send it in a step of its own (`continue`)"
    )]
    WrittenBefore,
}

/// What a guest is told about signed links.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// A mistake in the guest; the text is for its author.
    #[error("misuse: {0}")]
    Misuse(String),
    /// The link is bound to a caller or a session, and there is none.
    #[error("the call has no session to bind the link to")]
    NoSession,
}

/// What a guest is told about the workspace's queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// No such job in this workspace.
    #[error("no such job")]
    NotFound,
    /// The job stands so, which does not allow it.
    #[error("the job is {}", .0.as_str())]
    WrongStatus(Status),
    /// A job of the same kind and dedupe key waits or runs already.
    #[error("another job has taken its place")]
    Superseded,
    /// The delivery of an event to an area.
    #[error("the delivery of an event is not cancelled")]
    NotCancellable,
    /// The cursor was altered, or belongs to another filter.
    #[error("the cursor is not one of this filter")]
    InvalidCursor,
    /// A mistake in the guest; the text is for its author.
    #[error("misuse: {0}")]
    Misuse(String),
}

/// What a guest is told about who belongs to the workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// Nobody.
    #[error("no such user")]
    NoSuchUser,
    /// A mistake in the guest; the text is for its author.
    #[error("misuse: {0}")]
    Misuse(String),
}

/// What a guest is told about events and jobs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// A mistake in the guest; the text is for its author.
    #[error("misuse: {0}")]
    Misuse(String),
    /// The call's limit is used up.
    #[error("the call's limit is used up")]
    LimitExceeded,
}
