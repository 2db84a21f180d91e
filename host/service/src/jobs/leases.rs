//! The leases under which this process claims and runs jobs.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

/// Leases that tasks of this process use. A running job whose lease belongs to this process and is
/// not among them is run by nobody.
#[derive(Clone, Debug, Default)]
pub(super) struct LeasesInUse(Arc<Mutex<HashSet<Uuid>>>);

/// A lease in use. Dropping it ends the use.
#[derive(Debug)]
pub(super) struct LeaseGuard {
    pub(super) id: Uuid,
    in_use: LeasesInUse,
}

impl LeasesInUse {
    /// Begins to use a new lease. Must be called before the claim of its jobs, and the guard must
    /// exist until all of them have ended.
    pub(super) fn begin(&self) -> LeaseGuard {
        let id = Uuid::new_v4();
        self.0.lock().insert(id);
        LeaseGuard { id, in_use: self.clone() }
    }

    pub(super) fn contains(&self, lease: Uuid) -> bool {
        self.0.lock().contains(&lease)
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.in_use.0.lock().remove(&self.id);
    }
}
