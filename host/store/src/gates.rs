//! Workspace gates: locks that serialize the calls of a workspace after
//! repeated write conflicts.
//!
//! On PostgreSQL, the gate is an advisory lock of the session. A call takes it
//! on its own connection before its transaction begins, because otherwise the
//! snapshot would be older than the lock. Calls that do not hold the gate only
//! test it in the statement that writes. They never wait for it while they hold
//! other locks ([`Error::GateBusy`](super::Error::GateBusy)).
//!
//! Calls of the same process first wait in a local queue, without a connection:
//! calls that take the gate one by one, and between them calls that only write.

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use super::keyed_locks::KeyedLocks;
use assurance_core::domain::id::WorkspaceId;

/// This process's local locks in front of the gates of workspaces. A gate is a
/// lock that serializes the calls of a workspace after write conflicts.
#[derive(Debug, Default)]
pub(super) struct WorkspaceGates(KeyedLocks<WorkspaceId, RwLock<()>>);

impl WorkspaceGates {
    /// Waits until this call may take the workspace's gate: no other call of
    /// this process holds it, or prevents that it is taken.
    pub(super) async fn queue(&self, workspace: WorkspaceId) -> GateTurn {
        let lock = self.0.of(workspace, RwLock::default);
        GateTurn { workspace, _turn: lock.write_owned().await }
    }

    /// Waits until no call of this process holds the workspace's gate. While
    /// the returned guard exists, none can take it.
    pub(super) async fn pass(&self, workspace: WorkspaceId) -> GatePass {
        let lock = self.0.of(workspace, RwLock::default);
        GatePass { _open: lock.read_owned().await }
    }
}

/// Prevents calls of this process from taking a workspace's gate during a short
/// write. The holder must not wait for anything that such a call may hold.
#[derive(Debug)]
pub struct GatePass {
    _open: OwnedRwLockReadGuard<()>,
}

/// The exclusive right in this process to take a workspace's gate, which is an
/// advisory lock of PostgreSQL.
#[derive(Debug)]
pub(super) struct GateTurn {
    workspace: WorkspaceId,
    _turn: OwnedRwLockWriteGuard<()>,
}

impl GateTurn {
    /// Returns the statement that takes the advisory lock of the workspace's
    /// gate; it waits at most for the session's `lock_timeout`.
    pub(super) fn lock(&self) -> String {
        format!("SELECT pg_advisory_lock({})", gate_key(self.workspace))
    }

    /// Returns the statement that releases the advisory lock of the workspace's
    /// gate.
    pub(super) fn unlock(&self) -> String {
        format!("SELECT pg_advisory_unlock({})", gate_key(self.workspace))
    }
}

/// Returns the key of the advisory lock that is the workspace's gate.
pub(super) fn gate_key(workspace: WorkspaceId) -> i64 {
    let (high, low) = workspace.0.as_u64_pair();
    (high ^ low).cast_signed()
}
