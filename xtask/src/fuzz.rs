//! `cargo xtask fuzz`: runs the parsers of external input with mutations of real files
//! (`tests/fuzz`) for a given time.

use clap::Args;

use crate::process;
use crate::workspace::{Workspace, cargo};

#[derive(Args)]
pub(crate) struct Options {
    /// Arguments of `target/release/fuzz` (see its --help): --minutes 60, --seed 2, and names of
    /// targets
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds the fuzzer with optimization, and runs it.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<()> {
    let mut fuzz = cargo();
    fuzz.current_dir(&workspace.root)
        .args(["run", "--release", "--package", "assurance-fuzz", "--bin", "fuzz", "--"])
        .args(&options.arguments);
    process::run(&mut fuzz)
}
