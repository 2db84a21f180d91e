//! Commands for the ledger test, the fault table and the hostile test. `cargo xtask ledger`,
//! `faults` and `hostile` build what they need and run this program.

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use assurance_tests::Backend;
use assurance_tests::faults::{self, Fault};
use assurance_tests::hostile::{self, AttackPlan};
use assurance_tests::ledger::{self, Plan};
use clap::{Args, Parser, ValueEnum};
use futures::FutureExt as _;

#[derive(Parser)]
#[command(name = "ledger", about = "Holds acknowledged writes against the database")]
enum Command {
    /// Send writes with every operation, then compare the responses with the database
    Load(Plan),
    /// Inject faults under load and print a table row for each
    Faults(Faults),
    /// Run all attacks at once, and compare the service for ten other tenants with that before the
    /// attack
    Hostile(AttackPlan),
}

#[derive(Args)]
struct Faults {
    /// Inject only these faults; default: all
    only: Vec<Fault>,
    /// Use only this database; default: both
    #[arg(long)]
    database: Option<Backend>,
    /// Seed of the choice of requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let good = match Command::parse() {
        Command::Load(plan) => load(plan).await,
        Command::Faults(options) => inject(&options).await,
        Command::Hostile(plan) => attack(plan).await,
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn load(mut plan: Plan) -> bool {
    if plan.backend == Backend::Sqlite {
        plan.nodes = 1;
    }
    println!("{plan:?}");
    let report = ledger::run(&plan, |line| println!("{line}")).await;
    println!("at the end: {report}");
    report.defects().is_empty()
}

async fn attack(plan: AttackPlan) -> bool {
    let report = hostile::run(&plan, |line| println!("{line}")).await;
    println!("{report}");
    report.failures.is_empty() && report.ready_after == 200 && report.same_process
}

async fn inject(options: &Faults) -> bool {
    println!(
        "| fault | database | responses | readiness | recovery | longest write | acknowledged \
         | defects | note |\n|---|---|---|---|---|---|---|---|---|"
    );
    let all = Fault::value_variants().iter().copied();
    let mut good = true;
    for fault in all.filter(|fault| options.only.is_empty() || options.only.contains(fault)) {
        let only = options.database;
        let backends = fault.backends().iter().copied();
        for backend in backends.filter(|backend| only.is_none_or(|only| only == *backend)) {
            // Not a separate task: the stage runs blocking commands, and a blocked worker would
            // delay tasks that the command needs.
            let row = Box::pin(faults::run(fault, backend, options.seed));
            if let Ok(row) = AssertUnwindSafe(row).catch_unwind().await {
                println!("{row}");
                good &= row.is_good();
            } else {
                println!("| {fault:?} | {backend:?} | the harness failed |");
                good = false;
            }
        }
    }
    good
}
