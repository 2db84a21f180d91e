//! Advisories about vulnerable versions, imported in the OSV format from requests, uploads and
//! evidence.

pub(crate) mod document;
pub(crate) mod file;
pub(crate) mod import;
pub(crate) mod mentions;
mod packed;
pub(crate) mod routes;
