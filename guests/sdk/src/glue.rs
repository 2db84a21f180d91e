//! What only a component needs: its imports, an allocator that suits an
//! instance that dies with its call, and a panic message for the operator.
#![allow(
    unsafe_code,
    clippy::allow_attributes_without_reason,
    reason = "a global allocator cannot be written without"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};

use crate::host::Host;
use crate::wit::assurance::area::{
    blobs, calendar, crypto, directory, documents, egress, events, jobs, links, log, mail, malware,
    membership, queue, secrets, settings, types,
};

/// What every exported function does first: a panic is told to the operator
/// before the instance aborts.
pub fn begin() {
    std::panic::set_hook(Box::new(|panic| {
        log::write(log::Level::Error, &panic.to_string());
    }));
}

/// What follows may take much memory, so none of it comes out of the arena: the
/// host wipes every page that any call has written there after each later call
/// in its place, while it forgets what an instance has grown by.
pub fn leave_arena() {
    ALLOCATOR.used.set(ARENA_BYTES);
}

/// The component's imports. Methods are resolved statically, so that a
/// component imports nothing that its area does not use.
#[derive(Clone, Copy, Debug)]
pub struct Imports;

#[rustfmt::skip]
impl Host for Imports {
    fn get(&self, collection: &str, id: &str) -> Result<Option<documents::Document>, documents::Error> { documents::get(collection, id) }
    fn get_many(&self, collection: &str, ids: &[String]) -> Result<Vec<documents::Document>, documents::Error> { documents::get_many(collection, ids) }
    fn query(&self, query: &documents::Query) -> Result<documents::Page, documents::Error> { documents::find(query) }
    fn count(&self, collection: &str, conditions: &[documents::Condition], at_most: Option<u32>) -> Result<u64, documents::Error> { documents::count(collection, conditions, at_most) }
    fn count_by(&self, collection: &str, conditions: &[documents::Condition], fields: &[String]) -> Result<Vec<documents::Group>, documents::Error> { documents::count_by(collection, conditions, fields) }
    fn write(&self, collection: &str, writes: &[documents::Write]) -> Result<Vec<u64>, documents::Error> { documents::apply(collection, writes) }
    fn blob_stat(&self, name: &str) -> Result<Option<blobs::Info>, blobs::Error> { blobs::stat(name) }
    fn blob_read(&self, name: &str, offset: u64, length: u32) -> Result<Vec<u8>, blobs::Error> { blobs::read(name, offset, length) }
    fn blob_write(&self, name: &str, content: &[u8]) -> Result<blobs::Info, blobs::Error> { blobs::write(name, content) }
    fn blob_delete(&self, name: &str) -> Result<(), blobs::Error> { blobs::delete(name) }
    fn shared_blob_stat(&self, area: &str, name: &str) -> Result<Option<blobs::Info>, blobs::Error> { blobs::stat_shared(area, name) }
    fn shared_blob_read(&self, area: &str, name: &str, offset: u64, length: u32) -> Result<Vec<u8>, blobs::Error> { blobs::read_shared(area, name, offset, length) }
    fn scan(&self, blob: &str) -> Result<malware::Verdict, malware::Error> { malware::scan(blob) }
    fn sign_link(&self, operation: &str, claims: &str, expires_at: i64) -> Result<String, links::Error> { links::sign(operation, claims, expires_at) }
    fn setting(&self, key: &str) -> Option<String> { settings::get(key) }
    fn publish(&self, name: &str, data: &str) -> Result<String, events::Error> { events::publish(name, data) }
    fn enqueue(&self, job: &jobs::NewJob) -> Result<String, jobs::Error> { jobs::enqueue(job) }
    fn secret_put(&self, name: &str, value: &[u8]) -> Result<(), secrets::Error> { secrets::put(name, value) }
    fn secret_delete(&self, name: &str) -> Result<(), secrets::Error> { secrets::delete(name) }
    fn secret_exists(&self, name: &str) -> Result<bool, secrets::Error> { secrets::exists(name) }
    fn secret_hmac_sha256(&self, name: &str, message: &[u8]) -> Result<Vec<u8>, secrets::Error> { secrets::hmac_sha256(name, message) }
    fn random_bytes(&self, length: u32) -> Vec<u8> { crypto::random_bytes(length) }
    fn sha256(&self, data: &[u8]) -> Vec<u8> { crypto::sha256(data) }
    fn ed25519_verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool { crypto::ed25519_verify(public_key, message, signature) }
    fn member(&self, user: &str) -> Option<directory::Person> { directory::member(user) }
    fn members(&self) -> Vec<directory::Person> { directory::members() }
    fn workspace(&self) -> (String, String) { directory::workspace() }
    fn local(&self, zone: &str, at: i64) -> Result<calendar::Civil, calendar::Error> { calendar::local(zone, at) }
    fn resolve(&self, zone: &str, at: calendar::Civil) -> Result<i64, calendar::Error> { calendar::resolve(zone, at) }
    fn send(&self, request: &egress::Outgoing) -> Result<egress::Incoming, egress::Error> { egress::send(request) }
    fn check_url(&self, url: &str) -> Result<(), egress::Error> { egress::check(url) }
    fn queue_lanes(&self) -> Vec<queue::Lane> { queue::lanes() }
    fn queue_overview(&self, limit: u32) -> Result<Vec<queue::Job>, queue::Error> { queue::overview(limit) }
    fn queue_find(&self, filter: &queue::Filter, cursor: Option<&str>, limit: u32) -> Result<queue::Page, queue::Error> { queue::find(filter, cursor, limit) }
    fn queue_get(&self, job: &str) -> Option<queue::Job> { queue::get(job) }
    fn queue_retry(&self, job: &str) -> Result<queue::Job, queue::Error> { queue::retry(job) }
    fn queue_cancel(&self, job: &str, reason: &str) -> Result<queue::Job, queue::Error> { queue::cancel(job, reason) }
    fn account(&self, email: &str) -> Option<membership::Account> { membership::find_account(email) }
    fn add_member(&self, user: &str, role: types::Role) -> Result<(), membership::Error> { membership::add(user, role) }
    fn vouch(&self, email: &str, expires_at: i64) -> Result<String, membership::Error> { membership::vouch(email, expires_at) }
    fn send_mail(&self, message: &mail::Message) -> Result<(), mail::Error> { mail::send(message) }
    fn log(&self, level: log::Level, message: &str) { log::write(level, message) }
}

/// What an instance can allocate before it has to ask for memory: growing a
/// memory costs more than the rest of a small call, and so would wiping a
/// larger arena.
const ARENA_BYTES: usize = 128 * 1024;

#[repr(C, align(16))]
struct Arena(UnsafeCell<[u8; ARENA_BYTES]>);

/// Hands out the arena from the bottom upwards and takes only the last block
/// back: small calls end before it is full, and the instance with them. What
/// does not fit any more is the system allocator's, which reuses what is freed.
struct ArenaFirst {
    used: Cell<usize>,
}

static ARENA: Arena = Arena(UnsafeCell::new([0; ARENA_BYTES]));

#[global_allocator]
static ALLOCATOR: ArenaFirst = ArenaFirst { used: Cell::new(0) };

// SAFETY: a component's instance has one thread.
unsafe impl Sync for Arena {}
// SAFETY: a component's instance has one thread.
unsafe impl Sync for ArenaFirst {}

impl ArenaFirst {
    fn base() -> usize {
        ARENA.0.get() as usize
    }

    /// Where a block lies in the arena, if it does.
    fn offset(block: *mut u8) -> Option<usize> {
        (block as usize).checked_sub(Self::base()).filter(|offset| *offset < ARENA_BYTES)
    }
}

// SAFETY: blocks of the arena lie below `used` and do not overlap; its base is
// aligned to 16 and larger alignments are left to the system allocator.
unsafe impl GlobalAlloc for ArenaFirst {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = (self.used.get() + layout.align() - 1) & !(layout.align() - 1);
        match start.checked_add(layout.size()) {
            Some(end) if end <= ARENA_BYTES && layout.align() <= 16 => {
                self.used.set(end);
                (Self::base() + start) as *mut u8
            }
            // SAFETY: the caller's layout.
            _ => unsafe { System.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match Self::offset(block) {
            Some(offset) if offset + layout.size() == self.used.get() => self.used.set(offset),
            Some(_) => {}
            // SAFETY: it is not the arena's, so it is the system allocator's.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(offset) = Self::offset(block) else {
            // SAFETY: it is not the arena's, so it is the system allocator's.
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
