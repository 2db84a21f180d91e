//! `assurance evidence …`.

use clap::Subcommand;

use super::CommonOptions;
use super::evidence_new::EvidenceNew;
use super::evidence_sign::EvidenceSign;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create an unsigned envelope for the records in a file.
    New(EvidenceNew),
    /// Sign an envelope.
    Sign(EvidenceSign),
}

impl Command {
    pub(super) fn run(self, _common: &CommonOptions) -> anyhow::Result<()> {
        match self {
            Self::New(command) => command.run(),
            Self::Sign(command) => command.run(),
        }
    }
}
