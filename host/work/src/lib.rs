//! The unit of work: reads and pending writes of one call.
//!
//! The first read opens a snapshot. Writes are kept in memory and are visible
//! to the call's own later reads. When the handler has ended successfully, they
//! are sent in one batch. Locks are therefore short, and a slow guest holds
//! none.

mod blobs;
mod body;
mod code;
mod commit;
mod documents;
mod egress_log;
mod error;
mod links;
mod mails;
mod members;
mod outgoing;
mod overlay;
mod queue;
mod read_log;
mod reading;
mod recorded;
mod scope;
mod secrets;
#[cfg(test)]
mod tests;
mod write_lock_state;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use self::overlay::DocumentOverlay;
use self::read_log::{ComparedEffects, ReadLogMode};
use self::reading::ReadTransactionState;
use assurance_core::access::IsolationProfile;
use assurance_core::domain::area::CallContext;
use assurance_core::domain::id::{SessionId, UserId};
use assurance_core::domain::job::{EventDeliveryJobTemplate, JobProgress, JobRunEnd, NewJob};
use assurance_core::domain::queue::PendingMemberJobAction;
use assurance_core::domain::role::Role;
use assurance_core::domain::sealed::StoredSecret;
use assurance_core::recordings::Recorder;
use assurance_core::secrets::Keys;
use assurance_store::Store;
use assurance_store::apply::ReadBlob;
use assurance_store::blobs::StoredBlob;

pub use assurance_core::domain::people::Member;
pub use assurance_store::AccessibleCollection;
pub use assurance_store::idempotency::StoredReply;
pub use code::{AreaCode, CallError, CallOutcome, RunningCallSelector, TimeLimit};
pub use egress_log::EgressResponseCache;
pub use error::{
    BlobError, DocumentError, HostCallError, MembershipError, PublishOrEnqueueError, QueueError,
    SecretError, SendSecretError, SignedLinkError,
};
pub use outgoing::EnqueueJobRequest;
pub use read_log::ReadLog;
pub use recorded::{request_outcome, run_outcome};
pub use scope::{AreaPolicy, EventSubscriber, LimitsByArea, UnitOfWorkLimits};
pub use write_lock_state::WriteLockState;
pub use writes::{CheckedWrites, UncheckedWrites};

/// What a unit of work is for and what its call may do.
#[derive(Clone, Debug)]
pub struct UnitOfWorkSpec {
    /// Collections, rights and limits of the area whose code runs.
    pub area: Arc<AreaPolicy>,
    /// Workspace, time, seed and origin of the call.
    pub call: CallContext,
    /// The signed-in user who sent the request; `None` in a job.
    pub actor: Option<UserId>,
    /// Session of the request; `None` in a job, or if a signed link authorized
    /// the request.
    pub session: Option<SessionId>,
    /// Whether a signed link authorized the request.
    pub by_link: bool,
    /// Whether the call may write data.
    pub writes: bool,
    /// Whether the call is a job or event delivery.
    pub in_job: bool,
    /// Whether the call runs locked, after write conflicts. It takes the
    /// workspace's write lock before the first read, and checks the database
    /// before every write, so that the guest receives a conflict as an error.
    pub locked: bool,
    /// Limits of the call on documents, jobs, events and blobs.
    pub limits: UnitOfWorkLimits,
    /// Isolation profile of earlier calls; all calls of a route share one.
    /// `None`: the call begins a transaction at its first read if it may write.
    pub isolation_profile: Option<Arc<IsolationProfile>>,
}

impl UnitOfWorkSpec {
    /// Returns the spec for a call of the area that only reads, without a user,
    /// with the limits of the area.
    #[must_use]
    pub fn of(area: &Arc<AreaPolicy>, call: CallContext) -> Self {
        Self {
            area: Arc::clone(area),
            call,
            actor: None,
            session: None,
            by_link: false,
            writes: false,
            in_job: false,
            locked: false,
            limits: area.limits,
            isolation_profile: None,
        }
    }
}

/// Data that the host commits together with a unit of work: the stored response
/// and ends of jobs.
#[derive(Clone, Debug, Default)]
pub struct CommitAdditions {
    /// Response to store for the request's idempotency key; `None` if none is
    /// stored.
    pub reply: Option<StoredReply>,
    /// New states of the jobs that the call runs; empty for a request.
    pub jobs: Vec<JobRunEnd>,
}

/// Reads and pending writes of one call of an area. Dropping it discards the
/// writes.
#[derive(Debug)]
pub struct UnitOfWork {
    store: Store,
    keys: Arc<Keys>,
    spec: UnitOfWorkSpec,
    reading: ReadTransactionState,
    documents: DocumentOverlay,
    jobs: Vec<NewJob>,
    deliveries: Vec<EventDeliveryJobTemplate>,
    secrets: BTreeMap<String, SecretOrBlobState<StoredSecret>>,
    blobs: BTreeMap<String, SecretOrBlobState<StoredBlob>>,
    /// Blobs of other areas that the call has looked up, by area and name.
    shared_blobs: BTreeMap<(String, String), Option<StoredBlob>>,
    /// Rows of blobs as the call read them; the commit verifies that they are
    /// unchanged.
    seen_blobs: Vec<ReadBlob>,
    new_members: Vec<(UserId, Role)>,
    job_changes: Vec<PendingMemberJobAction>,
    progress: Option<JobProgress>,
    used: LimitUsage,
    /// Generator of the call's random bytes and ids, created on first use.
    random: Option<Box<ChaCha20Rng>>,
    /// Whether the call's documents were sent to the database before the
    /// commit.
    flushed: bool,
    turn: Arc<WriteLockState>,
    /// Whether the call has ended the transaction of its earlier reads, to wait
    /// for another service.
    released_connection: bool,
    /// Responses to network requests and mails, shared by all attempts of this
    /// job step; `None` if responses are not kept.
    sent: Option<Arc<EgressResponseCache>>,
    /// Number of network requests and mails of this attempt so far, including
    /// those that got a kept response.
    sends: usize,
    read_log: ReadLogMode,
    /// Effects of a call that repeats a read log, for the comparison with the
    /// recorded call.
    effects: ComparedEffects,
    recorder: Option<Arc<Recorder>>,
}

/// State of one secret or blob after the call's own changes, and whether the
/// call changed it.
#[derive(Debug)]
struct SecretOrBlobState<T> {
    now: Option<T>,
    changed: bool,
}

/// How much of its limits the call has used so far.
#[derive(Debug, Default)]
struct LimitUsage {
    documents: u32,
    bytes: u64,
    jobs: u32,
    events: u32,
    outgoing_bytes: u64,
    blob_bytes: u64,
}

impl UnitOfWork {
    /// Creates the unit of work of a call. Sends nothing to the database.
    #[must_use]
    pub fn new(store: Store, keys: Arc<Keys>, spec: UnitOfWorkSpec) -> Self {
        Self {
            store,
            keys,
            reading: ReadTransactionState::NotYet,
            documents: DocumentOverlay::default(),
            jobs: Vec::new(),
            deliveries: Vec::new(),
            secrets: BTreeMap::new(),
            blobs: BTreeMap::new(),
            shared_blobs: BTreeMap::new(),
            seen_blobs: Vec::new(),
            new_members: Vec::new(),
            job_changes: Vec::new(),
            progress: None,
            used: LimitUsage::default(),
            random: None,
            flushed: false,
            turn: Arc::default(),
            released_connection: false,
            sent: None,
            sends: 0,
            read_log: ReadLogMode::default(),
            effects: ComparedEffects::default(),
            recorder: None,
            spec,
        }
    }

    /// Sets the responses that earlier attempts of this job step received; the
    /// unit of work returns these responses instead of sending again.
    #[must_use]
    pub fn with_egress_log(mut self, sent: &Arc<EgressResponseCache>) -> Self {
        self.sent = Some(Arc::clone(sent));
        self
    }

    /// Returns what the unit of work is for and what its call may do.
    #[must_use]
    pub fn spec(&self) -> &UnitOfWorkSpec {
        &self.spec
    }

    /// Returns the state that shows whether the call blocks other writers.
    #[must_use]
    pub fn turn(&self) -> &Arc<WriteLockState> {
        &self.turn
    }

    /// Returns the number of documents that the call has read and written so
    /// far.
    #[must_use]
    pub fn documents_used(&self) -> u32 {
        self.used.documents
    }

    /// Returns whether the call has writes to commit.
    #[must_use]
    pub fn wrote(&self) -> bool {
        self.flushed
            || !self.jobs.is_empty()
            || !self.deliveries.is_empty()
            || self.changes_more()
            || self.documents.is_dirty(None)
            || self.secrets.values().any(|secret| secret.changed)
            || self.blobs.values().any(|blob| blob.changed)
    }

    /// Returns whether the call has effects outside the batch of
    /// [`apply`](assurance_store::apply).
    fn changes_more(&self) -> bool {
        !self.new_members.is_empty() || !self.job_changes.is_empty()
    }

    fn random(&mut self) -> &mut ChaCha20Rng {
        let seed = &self.spec.call.seed;
        self.random.get_or_insert_with(|| {
            // The prefix separates this generator from other uses of the seed.
            let seed = Sha256::new_with_prefix(b"assurance unit of work\0").chain_update(seed);
            Box::new(ChaCha20Rng::from_seed(seed.finalize().into()))
        })
    }

    /// Returns `n` unpredictable bytes for the guest. They are the same each
    /// time the call runs again.
    pub fn random_bytes(&mut self, n: usize) -> Vec<u8> {
        let mut bytes = vec![0; n];
        self.random().fill_bytes(&mut bytes);
        bytes
    }

    /// Returns the next UUIDv7, with the call's time. The ids are the same each
    /// time the call runs again.
    fn fresh_id(&mut self) -> Uuid {
        let mut random = [0; 10];
        self.random().fill_bytes(&mut random);
        let millis = u64::try_from(self.spec.call.now.0 / 1_000).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }
}
