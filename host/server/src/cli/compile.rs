//! `assurance compile-component`: hidden command that `serve` runs as a child
//! process to compile a component.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;

use super::output;
use assurance_runtime as runtime;

#[derive(Debug, Args)]
pub(super) struct Compile {
    /// Memory that the compiler process may write, in bytes.
    memory_bytes: u64,
    /// Maximum processor time of the compiler process, in seconds.
    cpu_seconds: u64,
    /// Maximum memory of an instance of the compiled component, in bytes.
    instance_bytes: usize,
}

impl Compile {
    /// Reads a component from standard input and writes machine code to
    /// standard output. Runs without an async executor; all threads belong to
    /// the compiler.
    pub(super) fn run(self) -> ExitCode {
        match runtime::compile_here(self.memory_bytes, self.cpu_seconds, self.instance_bytes) {
            Ok(Ok(())) => ExitCode::SUCCESS,
            Ok(Err((code, why))) => {
                let _ = writeln!(std::io::stderr(), "{why}");
                ExitCode::from(code)
            }
            Err(error) => {
                output::note(format_args!("{error:#}"));
                ExitCode::FAILURE
            }
        }
    }
}
