//! The words the whole host speaks: plain data, no I/O, no framework.
//!
//! Everything else may import from here; nothing here imports from the rest.

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
mod words;
