//! `cargo xtask …`: set-up, guest builds, running and testing without a shell. Missing programs are
//! installed with a note if possible; otherwise the exact command is printed.

mod apt;
mod bench;
mod dependencies;
mod fuzz;
mod guests;
mod host;
mod ledger;
mod postgres;
mod programs;
mod serve;
mod test;
mod wasm;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::process;

use crate::workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Set-up, builds, running and testing")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the areas as components into target/areas
    Guests(guests::Options),
    /// Build everything and serve ./data with a demonstration workspace
    Serve(serve::Options),
    /// Run every test, on SQLite and on a temporary PostgreSQL server
    Test(test::Options),
    /// Measure the components next to a native twin of their logic
    Bench(bench::Options),
    /// List the compiled registry crates in the target folder, for .ci/cache
    Dependencies,
    /// Compare acknowledged writes with the database under load, for a given time
    Ledger(ledger::Options),
    /// Fuzz the parsers of external input, for a given time
    Fuzz(fuzz::Options),
    /// Inject faults under load and print the clients' view of each
    Faults(ledger::Options),
    /// Attack a host with all hostile tenants at once, and print what its other tenants notice
    Hostile(ledger::Options),
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<()> {
    let workspace = Workspace::find()?;
    match task {
        Task::Guests(options) => guests::build(&workspace, options),
        Task::Serve(options) => serve::run(&workspace, &options),
        Task::Test(options) => test::run(&workspace, &options),
        Task::Bench(options) => bench::run(&workspace, &options),
        Task::Dependencies => dependencies::list(&workspace),
        Task::Ledger(options) => ledger::run(&workspace, "load", &options),
        Task::Fuzz(options) => fuzz::run(&workspace, &options),
        Task::Faults(options) => ledger::run(&workspace, "faults", &options),
        Task::Hostile(options) => ledger::run(&workspace, "hostile", &options),
    }
}
