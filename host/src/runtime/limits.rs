//! How much memory one instance, and all of them, may have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wasmtime::ResourceLimiter;

use crate::budgets::Entry;

/// Every instance has this much without it being counted for all: the pool
/// keeps about as much of each warm anyway.
const UNCOUNTED_BYTES: usize = 1 << 20;

/// Linear memory that all instances share, beyond the first MiB of each.
#[derive(Debug)]
pub(super) struct SharedMemory {
    used: AtomicUsize,
    max: usize,
}

impl SharedMemory {
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

/// Whose limit it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// The instance's own: the guest wants too much.
    Own,
    /// One shared with others: the host, or the area, is busy.
    Shared,
}

/// One instance's memory. Remembers a refusal, so that the trap a guest ends
/// in afterwards can be told from others.
#[derive(Debug)]
pub(super) struct Memory {
    shared: Arc<SharedMemory>,
    /// Whose memory it is; nobody's in `describe`.
    entry: Option<Arc<Entry>>,
    max: usize,
    total: usize,
    counted: usize,
    denied: Option<Denied>,
}

impl Memory {
    pub(super) fn new(shared: Arc<SharedMemory>, max: usize, entry: Option<Arc<Entry>>) -> Self {
        Self { shared, entry, max, total: 0, counted: 0, denied: None }
    }

    pub(super) fn denied(&self) -> Option<Denied> {
        self.denied
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Denied> {
        let total = self.total.saturating_add(bytes);
        if total > self.max {
            return Err(Denied::Own);
        }
        let counted = total.saturating_sub(UNCOUNTED_BYTES);
        if counted > self.counted && !self.take(counted - self.counted) {
            return Err(Denied::Shared);
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

impl Drop for Memory {
    fn drop(&mut self) {
        self.shared.give_back(self.counted);
        if let Some(entry) = &self.entry {
            entry.give_memory_back(self.counted);
            entry.note_memory(self.total);
        }
    }
}

impl ResourceLimiter for Memory {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // What the module's own maximum forbids is no refusal of the host's.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let grown = self.grow(desired.saturating_sub(current));
        self.denied = self.denied.or(grown.err());
        Ok(grown.is_ok())
    }

    /// Bounded by the pool's slots.
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
        let shared = Arc::new(SharedMemory::new(100 * MIB));
        let mut memory = Memory::new(shared, 4 * MIB, None);
        assert!(memory.memory_growing(0, 3 * MIB, None).unwrap());
        assert!(!memory.memory_growing(3 * MIB, 5 * MIB, None).unwrap());
        assert_eq!(memory.denied(), Some(Denied::Own));
    }

    #[test]
    fn what_all_share_is_given_back_with_the_instance() {
        let shared = Arc::new(SharedMemory::new(4 * MIB));
        let mut first = Memory::new(shared.clone(), 10 * MIB, None);
        let mut second = Memory::new(shared.clone(), 10 * MIB, None);
        assert!(first.memory_growing(0, 4 * MIB, None).unwrap());
        assert!(!second.memory_growing(0, 4 * MIB, None).unwrap());
        assert_eq!(second.denied(), Some(Denied::Shared));
        drop(first);
        assert!(second.memory_growing(0, 4 * MIB, None).unwrap());
        drop(second);
        assert_eq!(shared.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn small_instances_are_not_counted() {
        let shared = Arc::new(SharedMemory::new(0));
        let mut memory = Memory::new(shared, 10 * MIB, None);
        assert!(memory.memory_growing(0, MIB, None).unwrap());
        assert!(!memory.memory_growing(MIB, MIB + 65_536, None).unwrap());
    }
}
