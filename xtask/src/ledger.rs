//! `cargo xtask ledger`, `cargo xtask faults` and `cargo xtask hostile`: long runs of
//! `tests/src/ledger`, `tests/src/faults` and `tests/src/hostile`.

use std::process::Command;

use clap::Args;

use crate::host::Profile;
use crate::postgres::TemporaryPostgres;
use crate::workspace::{GuestKind, Workspace, cargo};
use crate::{guests, host, process};

#[derive(Args)]
pub(crate) struct Options {
    /// Build the host without optimization: slower at runtime, but built faster
    #[arg(long)]
    debug: bool,
    /// Arguments of `target/debug/ledger load`, `faults` or `hostile` (see its --help), such as
    /// --minutes 60 --nodes 3 --hang-up --kill 1000 --database sqlite
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds everything, starts PostgreSQL and runs a command of the program `ledger`.
pub(crate) fn run(workspace: &Workspace, command: &str, options: &Options) -> anyhow::Result<()> {
    process::outlive_interruptions()?;
    guests::build(workspace, guests::Options { fixtures: true, ..guests::Options::default() })?;
    let profile = if options.debug { Profile::Dev } else { Profile::Release };
    let binary = host::build(workspace, profile)?;
    let mut build = cargo();
    // Builds a test too, so that dependencies have the features that tests need and are not
    // compiled twice.
    build.current_dir(&workspace.root);
    build.args(["build", "--workspace", "--bin", "ledger", "--test", "e2e"]);
    process::run(&mut build)?;
    let postgres = TemporaryPostgres::start()?;
    let mut ledger = Command::new(workspace.target.join("debug/ledger"));
    ledger
        .arg(command)
        .args(&options.arguments)
        .env("ASSURANCE_TEST_POSTGRES", postgres.url())
        .env("ASSURANCE_BIN", binary)
        .env("ASSURANCE_AREAS", workspace.components(GuestKind::Area))
        .env("ASSURANCE_FIXTURES", workspace.components(GuestKind::Fixture));
    process::run(&mut ledger)
}
