//! One handler's transaction: what it read, and what it wants written.
//!
//! Reads open a snapshot when the first one comes. Writes are kept here, seen
//! by the handler's own later reads, and sent in one batch when it has ended
//! well, so that locks are short and a slow guest holds none.

mod blobs;
mod body;
mod code;
mod commit;
mod documents;
mod fault;
mod links;
mod mails;
mod members;
mod outgoing;
mod overlay;
mod queue;
mod reading;
mod recorded;
mod scope;
mod secrets;
mod sent;
mod tape;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use self::overlay::Overlay;
use self::reading::Reading;
use self::tape::{Left, Taped};
use crate::domain::area::Call;
use crate::domain::id::{SessionId, UserId};
use crate::domain::job::{JobEnd, NewJob};
use crate::domain::queue::JobChange;
use crate::domain::role::Role;
use crate::domain::sealed::StoredSecret;
use crate::recordings::Recorder;
use crate::secrets::Keys;
use crate::store::Store;
use crate::store::blobs::StoredBlob;

pub use crate::domain::people::Member;
pub use crate::store::CollectionScope;
pub use crate::store::idempotency::IdempotentReply;
pub use code::{AreaCode, CallError, EndCalls, Ended};
pub use fault::{
    BlobError, DocumentError, Fault, LinkError, MembershipError, QueueError, SecretError,
    SendSecretError, WorkError,
};
pub use outgoing::Wish;
pub use recorded::{end_of_request, end_of_run};
pub use scope::{AreaScope, Habit, Habits, Limits, LimitsByArea, Subscriber};
pub use sent::Sent;
pub use tape::Tape;
pub use turn::Turn;

/// What a unit of work is for and may do.
#[derive(Clone, Debug)]
pub struct UnitSpec {
    /// The area whose code runs.
    pub area: Arc<AreaScope>,
    /// The circumstances.
    pub call: Call,
    /// Who asked; nobody in a job.
    pub actor: Option<UserId>,
    /// In which session; none in a job, and where a link was enough.
    pub session: Option<SessionId>,
    /// It came by a signed link, which is the caller's authority here.
    pub by_link: bool,
    /// Whether anything may be written.
    pub writes: bool,
    /// A job or event delivery, not a request.
    pub in_job: bool,
    /// The call lost before: take the workspace's write lock before the first
    /// read, and look before every write, so that the guest is told of a
    /// conflict instead of losing again.
    pub locked: bool,
    /// How much it may do.
    pub limits: Limits,
    /// What the route's earlier calls have shown; one for each route, shared
    /// by its calls. Nothing: assume nothing.
    pub habit: Option<Arc<Habit>>,
}

/// What a unit of work is committed with.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// The answer to keep for a retried request.
    pub reply: Option<IdempotentReply>,
    /// How the job ends.
    pub job: Option<JobEnd>,
}

/// One handler's transaction; dropped, nothing of it is kept.
#[derive(Debug)]
pub struct UnitOfWork {
    store: Store,
    keys: Arc<Keys>,
    spec: UnitSpec,
    reading: Reading,
    documents: Overlay,
    jobs: Vec<NewJob>,
    secrets: BTreeMap<String, Kept<StoredSecret>>,
    blobs: BTreeMap<String, Kept<StoredBlob>>,
    /// What other areas' blobs were found to be, by area and name.
    shared_blobs: BTreeMap<(String, String), Option<StoredBlob>>,
    new_members: Vec<(UserId, Role)>,
    job_changes: Vec<JobChange>,
    used: Used,
    /// Made for those that ask.
    random: Option<Box<ChaCha20Rng>>,
    /// Documents have been sent to the database before the end.
    flushed: bool,
    turn: Arc<Turn>,
    /// It has read outside of whatever it reads from now.
    has_let_go: bool,
    /// What earlier goes sent to the network, and how often this one has.
    sent: Option<Arc<Sent>>,
    sends: usize,
    taped: Taped,
    /// What it told others, where it is held against another call.
    told: Left,
    recorder: Option<Arc<Recorder>>,
}

/// What a call knows of a secret or a blob.
#[derive(Debug)]
struct Kept<T> {
    now: Option<T>,
    changed: bool,
}

/// What a call has used of its limits.
#[derive(Debug, Default)]
struct Used {
    documents: u32,
    bytes: u64,
    jobs: u32,
    events: u32,
    outgoing_bytes: u64,
    blob_bytes: u64,
}

impl UnitOfWork {
    /// A fresh one; the database is not asked for anything yet.
    #[must_use]
    pub fn new(store: Store, keys: Arc<Keys>, spec: UnitSpec) -> Self {
        Self {
            store,
            keys,
            reading: Reading::NotYet,
            documents: Overlay::default(),
            jobs: Vec::new(),
            secrets: BTreeMap::new(),
            blobs: BTreeMap::new(),
            shared_blobs: BTreeMap::new(),
            new_members: Vec::new(),
            job_changes: Vec::new(),
            used: Used::default(),
            random: None,
            flushed: false,
            turn: Arc::default(),
            has_let_go: false,
            sent: None,
            sends: 0,
            taped: Taped::default(),
            told: Left::default(),
            recorder: None,
            spec,
        }
    }

    /// Another go at a step of a job that has sent this already.
    #[must_use]
    pub fn after(mut self, sent: &Arc<Sent>) -> Self {
        self.sent = Some(Arc::clone(sent));
        self
    }

    /// What it is for.
    #[must_use]
    pub fn spec(&self) -> &UnitSpec {
        &self.spec
    }

    /// Whether it keeps others from writing.
    #[must_use]
    pub fn turn(&self) -> &Arc<Turn> {
        &self.turn
    }

    /// Documents it has read and written so far.
    #[must_use]
    pub fn documents_used(&self) -> u32 {
        self.used.documents
    }

    /// Whether there is anything to commit.
    #[must_use]
    pub fn wrote(&self) -> bool {
        self.flushed
            || !self.jobs.is_empty()
            || self.changes_more()
            || self.documents.is_dirty(None)
            || self.secrets.values().any(|secret| secret.changed)
            || self.blobs.values().any(|blob| blob.changed)
    }

    /// Whether it leaves something behind that is not part of the one batch of
    /// [`apply`](crate::store::apply).
    fn changes_more(&self) -> bool {
        !self.new_members.is_empty() || !self.job_changes.is_empty()
    }

    fn random(&mut self) -> &mut ChaCha20Rng {
        let seed = &self.spec.call.seed;
        self.random.get_or_insert_with(|| {
            // Apart from whatever else the seed is used for.
            let seed = Sha256::new_with_prefix(b"assurance unit of work\0").chain_update(seed);
            Box::new(ChaCha20Rng::from_seed(seed.finalize().into()))
        })
    }

    /// `n` unpredictable bytes, the same ones each time the call is run.
    pub fn random_bytes(&mut self, n: usize) -> Vec<u8> {
        let mut bytes = vec![0; n];
        self.random().fill_bytes(&mut bytes);
        bytes
    }

    /// A UUIDv7 of the call's moment, the same one each time the call is run.
    fn fresh_id(&mut self) -> Uuid {
        let mut random = [0; 10];
        self.random().fill_bytes(&mut random);
        let millis = u64::try_from(self.spec.call.now.0 / 1_000).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }
}
