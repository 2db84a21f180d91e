//! `assurance completions`.

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use super::{Cli, output};

/// Print the completions of a shell, for it to load: in bash,
/// `source <(assurance completions bash)`.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "assurance", &mut script);
        output::text(String::from_utf8_lossy(&script));
    }
}
