//! The Workspace Assurance Service host: HTTP, sessions and storage around
//! API areas that run as sandboxed WebAssembly components.
//!
//! A module imports only from its own layer and those below; an empty line
//! separates layers. ARCHITECTURE.md describes the modules, and a test checks
//! the layers.

// What prints panics where nobody reads: `cli::output` and `telemetry` do not.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod cli;

pub mod serve;

pub mod http;

pub mod app;

pub mod jobs;
pub mod registry;

pub mod runtime;

pub mod work;

pub mod backup;

pub mod open;

pub mod oci;

pub mod egress;
pub mod identity;
pub mod mail;
pub mod malware;

pub mod store;

pub mod journal;

pub mod recordings;

pub mod budgets;

pub mod config;
pub mod domain;
pub mod links;
pub mod secrets;
pub mod signing;
pub mod telemetry;
#[cfg(test)]
mod turns;

/// A request makes and drops hundreds of small things, and an instance's tables
/// of some ten kilobytes, on any thread: by the C library's allocator a list of
/// documents costs a fifth more of the processor.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
