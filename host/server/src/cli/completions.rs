//! `assurance completions`.

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use super::{Cli, output};

/// Print a completion script for a shell; in bash, load it with `source
/// <(assurance completions bash)`.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// Name of the shell.
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "assurance", &mut script);
        output::text(String::from_utf8_lossy(&script));
    }
}
