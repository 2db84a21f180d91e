//! `assurance compile-component`: the child process in which `serve` compiles.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;

use super::output;
use assurance_runtime::{self as runtime, CompileJob};

#[derive(Debug, Args)]
pub(super) struct Compile {
    /// Memory that it may write to, in bytes.
    memory_bytes: u64,
    /// Processor time, in seconds.
    cpu_seconds: u64,
    /// The most memory of an instance, in bytes.
    instance_bytes: usize,
    /// Its niceness.
    niceness: i32,
}

impl Compile {
    /// From standard input to standard output. Has no executor: its threads
    /// are the compiler's.
    pub(super) fn run(self) -> ExitCode {
        let Self { memory_bytes, cpu_seconds, instance_bytes, niceness } = self;
        let job = CompileJob { memory_bytes, cpu_seconds, instance_bytes, niceness };
        match runtime::compile_here(job) {
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
