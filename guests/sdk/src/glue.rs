//! Runtime support of a component: an allocator for instances that live for one call, and a log
//! line for each panic.
#![allow(
    unsafe_code,
    clippy::allow_attributes_without_reason,
    reason = "a global allocator cannot be written without"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};

use crate::Area;
use crate::wit::assurance::area::log;
use crate::wit::exports::assurance::area::batches::Batch;

/// Logs a panic before the instance aborts; the host shows its line as the cause of the fault.
/// Every exported function must call this first.
pub fn begin() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        log::write(log::Level::Error, &lines.join(" "));
    }));
}

/// Returns the kinds of jobs that may run together, as the component exports them.
pub fn batches(area: &Area) -> Vec<Batch> {
    let batch = |(kind, most): (&str, u32)| Batch { kind: kind.to_owned(), most };
    area.batches().into_iter().map(batch).collect()
}

/// Makes all further allocations use the system allocator instead of the arena. Called before work
/// that needs much memory: after each later call in the same slot, the host clears every arena page
/// that any call has written, but it releases memory that an instance has grown by.
pub fn leave_arena() {
    ALLOCATOR.used.set(ARENA_BYTES);
}

/// Size of the arena in bytes: memory that an instance can allocate before it has to grow. Growing
/// costs more than the rest of a small call, and so would clearing a larger arena.
const ARENA_BYTES: usize = 128 * 1024;

#[repr(C, align(16))]
struct ArenaMemory(UnsafeCell<[u8; ARENA_BYTES]>);

/// Allocates from the arena upwards and reuses only the last block that was freed, because a small
/// call ends before the arena is full. The system allocator serves all blocks that do not fit.
struct ArenaFirstAllocator {
    used: Cell<usize>,
}

static ARENA: ArenaMemory = ArenaMemory(UnsafeCell::new([0; ARENA_BYTES]));

#[global_allocator]
static ALLOCATOR: ArenaFirstAllocator = ArenaFirstAllocator { used: Cell::new(0) };

// SAFETY: a component's instance has one thread.
unsafe impl Sync for ArenaMemory {}
// SAFETY: a component's instance has one thread.
unsafe impl Sync for ArenaFirstAllocator {}

impl ArenaFirstAllocator {
    fn base() -> usize {
        ARENA.0.get() as usize
    }

    /// Returns a block's offset in the arena; `None` if the system allocator owns it.
    fn offset(block: *mut u8) -> Option<usize> {
        (block as usize).checked_sub(Self::base()).filter(|offset| *offset < ARENA_BYTES)
    }
}

// SAFETY: blocks of the arena lie below `used` and do not overlap; its base is
// aligned to 16 and larger alignments are left to the system allocator.
unsafe impl GlobalAlloc for ArenaFirstAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = (self.used.get() + layout.align() - 1) & !(layout.align() - 1);
        match start.checked_add(layout.size()) {
            Some(end) if end <= ARENA_BYTES && layout.align() <= 16 => {
                self.used.set(end);
                (Self::base() + start) as *mut u8
            }
            // SAFETY: the caller guarantees a valid layout.
            _ => unsafe { System.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match Self::offset(block) {
            Some(offset) if offset + layout.size() == self.used.get() => self.used.set(offset),
            Some(_) => {}
            // SAFETY: the block is not in the arena, so the system allocator owns it.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(offset) = Self::offset(block) else {
            // SAFETY: the block is not in the arena, so the system allocator owns it.
            return unsafe { System.realloc(block, layout, size) };
        };
        let last = offset + layout.size() == self.used.get();
        if last && offset.checked_add(size).is_some_and(|end| end <= ARENA_BYTES) {
            self.used.set(offset + size);
            return block;
        }
        // SAFETY: the new block does not overlap the old one, which holds
        // `layout.size()` bytes.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(block, layout.size().min(size));
            }
            moved
        }
    }
}
