//! Documents that first-party areas read from each other: those of the catalog, of uploads and of
//! evidence, and a job that consumes evidence records.
//!
//! A type here has the members that some reader needs, not all that the owner stores. An absent
//! member has its default, so that documents of other versions can be read. A test compares the
//! types with the owners' manifests.

pub mod catalog;
pub mod evidence;
pub mod uploads;
