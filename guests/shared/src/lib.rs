//! Documents that first-party areas read from each other: those of the catalog, of uploads and of
//! evidence, those that are only counted, a job that consumes evidence records, and an event of the
//! queue.
//!
//! A type here has the members that some reader needs, not all that the owner stores. An absent
//! member has its default, so that documents of other versions can be read. A test compares the
//! types with the owners' manifests.

pub mod catalog;
pub mod counts;
pub mod evidence;
pub mod queue;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod uploads;
