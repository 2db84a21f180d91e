//! Domain types of the host: plain data without I/O or framework.
//!
//! All other modules may import these; these import nothing from the other
//! modules.

pub mod area;
pub mod deployment;
pub mod document;
pub mod health;
pub mod id;
pub mod job;
pub mod manifest;
pub mod operator;
pub mod people;
pub mod queue;
pub mod role;
pub mod sealed;
pub mod time;
pub mod trial;
pub(crate) mod words;
