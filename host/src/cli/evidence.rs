//! `assurance evidence …`.

use clap::Subcommand;

use super::Common;
use super::evidence_new::New;
use super::evidence_sign::Sign;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make an unsigned envelope around records from a file.
    New(New),
    /// Sign an envelope.
    Sign(Sign),
}

impl Command {
    pub(super) fn run(self, _common: &Common) -> anyhow::Result<()> {
        match self {
            Self::New(command) => command.run(),
            Self::Sign(command) => command.run(),
        }
    }
}
