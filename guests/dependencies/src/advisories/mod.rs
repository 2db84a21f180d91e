//! Advisories: what is known of vulnerable versions, imported in the OSV
//! format by request, from uploads and from evidence.

pub(crate) mod document;
pub(crate) mod file;
pub(crate) mod import;
pub(crate) mod mentions;
mod packed;
pub(crate) mod routes;
