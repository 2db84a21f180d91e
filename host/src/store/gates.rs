//! One call at a time of a workspace whose calls keep losing to each other.
//!
//! On PostgreSQL the gate is an advisory lock of the session, taken on the
//! call's own connection before its transaction: taken inside, it would be
//! granted after the transaction's snapshot. Calls that do not hold the gate
//! only try it, in the statement that writes, and never wait for it while they
//! hold anything ([`Error::GateBusy`](super::Error::GateBusy)).
//!
//! Calls of one process queue here first, so that only one of them waits in
//! the database, with a connection.

use tokio::sync::OwnedSemaphorePermit;

use super::keyed::Keyed;
use crate::domain::id::WorkspaceId;

/// The process's queues for the gates of its workspaces.
#[derive(Debug)]
pub(super) struct Gates(Keyed<WorkspaceId>);

impl Default for Gates {
    fn default() -> Self {
        Self(Keyed::new(1))
    }
}

impl Gates {
    /// Waits in the process's queue for a workspace's gate.
    pub(super) async fn queue(&self, workspace: WorkspaceId) -> GatePass {
        GatePass { workspace, _turn: self.0.acquire(workspace).await }
    }
}

/// The right to take a workspace's advisory lock, and to keep it.
#[derive(Debug)]
pub(super) struct GatePass {
    workspace: WorkspaceId,
    _turn: OwnedSemaphorePermit,
}

impl GatePass {
    /// The statement that takes the advisory lock; it waits for no longer than
    /// the session's `lock_timeout`.
    pub(super) fn lock(&self) -> String {
        format!("SELECT pg_advisory_lock({})", gate_key(self.workspace))
    }

    /// The statement that gives it up.
    pub(super) fn unlock(&self) -> String {
        format!("SELECT pg_advisory_unlock({})", gate_key(self.workspace))
    }
}

/// The key of a workspace's advisory lock.
pub(super) fn gate_key(workspace: WorkspaceId) -> i64 {
    let (high, low) = workspace.0.as_u64_pair();
    (high ^ low).cast_signed()
}
