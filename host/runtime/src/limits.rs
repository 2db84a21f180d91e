//! Memory limits of one instance, and of all instances together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wasmtime::ResourceLimiter;

use assurance_core::budgets::BudgetPermit;

/// Memory of every instance that does not count towards the shared limit,
/// because the pool keeps about this much for each instance anyway, in bytes.
const UNCOUNTED_BYTES: usize = 1 << 20;

/// Linear memory that all instances use together, beyond the first MiB of each,
/// and its maximum.
#[derive(Debug)]
pub(super) struct TotalInstanceMemory {
    used: AtomicUsize,
    max: usize,
}

impl TotalInstanceMemory {
    pub(super) fn new(max: usize) -> Self {
        Self { used: AtomicUsize::new(0), max }
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.max);
        self.used.try_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The limit that refused more memory to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExceededMemoryLimit {
    /// The limit of the instance itself: the guest needs too much memory.
    Own,
    /// A limit shared with other instances, of the host, the area or the
    /// workspace.
    Shared,
}

/// Memory use of one instance and its limit. It records a refusal, so that the
/// guest's following trap can be attributed to it.
#[derive(Debug)]
pub(super) struct InstanceMemory {
    shared: Arc<TotalInstanceMemory>,
    /// The budget that the memory counts towards; `None` in `describe`.
    entry: Option<Arc<BudgetPermit>>,
    max: usize,
    total: usize,
    counted: usize,
    denied: Option<ExceededMemoryLimit>,
}

impl InstanceMemory {
    pub(super) fn new(
        shared: Arc<TotalInstanceMemory>,
        max: usize,
        entry: Option<Arc<BudgetPermit>>,
    ) -> Self {
        Self { shared, entry, max, total: 0, counted: 0, denied: None }
    }

    /// Returns the instance's own limit, in bytes.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    pub(super) fn denied(&self) -> Option<ExceededMemoryLimit> {
        self.denied
    }

    fn grow(&mut self, bytes: usize) -> Result<(), ExceededMemoryLimit> {
        let total = self.total.saturating_add(bytes);
        if total > self.max {
            return Err(ExceededMemoryLimit::Own);
        }
        let counted = total.saturating_sub(UNCOUNTED_BYTES);
        if counted > self.counted && !self.take(counted - self.counted) {
            return Err(ExceededMemoryLimit::Shared);
        }
        self.total = total;
        self.counted = counted;
        Ok(())
    }

    fn take(&self, bytes: usize) -> bool {
        if !self.shared.take(bytes) {
            return false;
        }
        let taken = self.entry.as_ref().is_none_or(|entry| entry.take_memory(bytes));
        if !taken {
            self.shared.give_back(bytes);
        }
        taken
    }
}

impl Drop for InstanceMemory {
    fn drop(&mut self) {
        self.shared.give_back(self.counted);
        if let Some(entry) = &self.entry {
            entry.give_memory_back(self.counted);
            entry.note_memory(self.total);
        }
    }
}

impl ResourceLimiter for InstanceMemory {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // Exceeding the module's own maximum is not a refusal by the host.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let grown = self.grow(desired.saturating_sub(current));
        self.denied = self.denied.or(grown.err());
        Ok(grown.is_ok())
    }

    /// Allows any table to grow, because the instance pool limits tables.
    fn table_growing(&mut self, _: usize, _: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn an_instance_is_refused_beyond_its_own_cap() {
        let shared = Arc::new(TotalInstanceMemory::new(100 * MIB));
        let mut memory = InstanceMemory::new(shared, 4 * MIB, None);
        assert!(memory.memory_growing(0, 3 * MIB, None).unwrap());
        assert!(!memory.memory_growing(3 * MIB, 5 * MIB, None).unwrap());
        assert_eq!(memory.denied(), Some(ExceededMemoryLimit::Own));
    }

    #[test]
    fn what_all_share_is_given_back_with_the_instance() {
        let shared = Arc::new(TotalInstanceMemory::new(4 * MIB));
        let mut first = InstanceMemory::new(shared.clone(), 10 * MIB, None);
        let mut second = InstanceMemory::new(shared.clone(), 10 * MIB, None);
        assert!(first.memory_growing(0, 4 * MIB, None).unwrap());
        assert!(!second.memory_growing(0, 4 * MIB, None).unwrap());
        assert_eq!(second.denied(), Some(ExceededMemoryLimit::Shared));
        drop(first);
        assert!(second.memory_growing(0, 4 * MIB, None).unwrap());
        drop(second);
        assert_eq!(shared.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn small_instances_are_not_counted() {
        let shared = Arc::new(TotalInstanceMemory::new(0));
        let mut memory = InstanceMemory::new(shared, 10 * MIB, None);
        assert!(memory.memory_growing(0, MIB, None).unwrap());
        assert!(!memory.memory_growing(MIB, MIB + 65_536, None).unwrap());
    }
}
