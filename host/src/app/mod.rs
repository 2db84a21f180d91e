//! Use cases: what the service does, without saying how it is asked.

pub mod folder;
