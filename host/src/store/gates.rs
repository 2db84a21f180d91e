//! One call at a time of a workspace whose calls keep losing to each other.
//!
//! On PostgreSQL the gate is an advisory lock of the session, taken on the
//! call's own connection before its transaction: taken inside, it would be
//! granted after the transaction's snapshot. Calls that do not hold the gate
//! only try it, in the statement that writes, and never wait for it while they
//! hold anything ([`Error::GateBusy`](super::Error::GateBusy)).
//!
//! Calls of one process queue here first, without a connection: those that
//! take the gate one by one, and between them those that only write.

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use super::keyed::Keyed;
use crate::domain::id::WorkspaceId;

/// The process's queues for the gates of its workspaces.
#[derive(Debug, Default)]
pub(super) struct Gates(Keyed<WorkspaceId, RwLock<()>>);

impl Gates {
    /// Waits in the process's queue to take a workspace's gate.
    pub(super) async fn queue(&self, workspace: WorkspaceId) -> GatePass {
        let lock = self.0.of(workspace, RwLock::default);
        GatePass { workspace, _turn: lock.write_owned().await }
    }

    /// Waits until no call of this process has a workspace's gate.
    pub(super) async fn pass(&self, workspace: WorkspaceId) -> OpenGate {
        let lock = self.0.of(workspace, RwLock::default);
        OpenGate { _open: lock.read_owned().await }
    }
}

/// Keeps the process's own calls from taking a workspace's gate; for a short
/// write. Nothing else may be waited for that such a call holds.
#[derive(Debug)]
pub struct OpenGate {
    _open: OwnedRwLockReadGuard<()>,
}

/// The right to take a workspace's advisory lock, and to keep it.
#[derive(Debug)]
pub(super) struct GatePass {
    workspace: WorkspaceId,
    _turn: OwnedRwLockWriteGuard<()>,
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
