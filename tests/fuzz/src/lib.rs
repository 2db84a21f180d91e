//! Fuzzes every parser of external input.
//!
//! Inputs are mutations of seeds: small samples for each target, and files of the corpus. They are
//! derived from a number, so that each execution can be repeated. Mutations are not guided by
//! coverage, which needs a nightly toolchain. The targets are plain functions of bytes, so
//! cargo-fuzz can call them, too.

mod mutate;
mod oracle;
mod seeds;
mod targets;

pub use mutate::Mutator;
pub use oracle::{Finding, check};
pub use seeds::seeds;
pub use targets::{TARGETS, Target};
