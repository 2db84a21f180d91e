//! Use cases: executes requests, manages versions of areas, and runs jobs.

pub mod app;
pub mod jobs;
pub mod open;
pub mod registry;
#[cfg(test)]
mod testing;
