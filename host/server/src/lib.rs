//! The Workspace Assurance Service host: HTTP, sessions and storage for API areas that run as
//! sandboxed WebAssembly components.
//!
//! A module imports only from its own layer and those below; an empty line separates layers.
//! ARCHITECTURE.md describes the modules, and a test checks the layers.

// Printing panics if the output is closed. `cli::output` and `telemetry` do not panic.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod backup;
pub mod cli;
pub mod http;
pub mod serve;
pub mod telemetry;

/// Memory allocator of the process. Each request allocates and frees hundreds of small objects and
/// some tables of about ten kilobytes, on any thread. With the C library's allocator, listing
/// documents takes a fifth more CPU time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
