//! The `assurance` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    assurance::cli::main()
}
