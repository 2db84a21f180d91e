//! Commands for the ledger test, the fault table and the hostile test. `cargo xtask ledger`,
//! `faults` and `hostile` build what they need and run this program.

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Duration;

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
    Load(Load),
    /// Inject faults under load and print a table row for each
    Faults(Faults),
    /// Run all attacks at once, and compare the service for ten other tenants with that before the
    /// attack
    Hostile(Hostile),
}

#[derive(Args)]
struct Load {
    /// Duration of the load, in minutes
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Database of the nodes
    #[arg(long, default_value = "postgres")]
    database: Backend,
    /// Number of nodes on PostgreSQL
    #[arg(long, default_value_t = 1)]
    nodes: usize,
    /// Number of clients that write
    #[arg(long, default_value_t = 12)]
    clients: u64,
    /// Number of workspaces under load
    #[arg(long, default_value_t = 4)]
    workspaces: usize,
    /// Number of clients that reset their connections up to 350 ms after sending
    #[arg(long, default_value_t = 0, default_missing_value = "8", num_args = 0..=1)]
    hang_up: u64,
    /// Number of times that a random node is killed under load
    #[arg(long, default_value_t = 0)]
    kill: u32,
    /// Interval between two checks, in seconds
    #[arg(long, default_value_t = 120)]
    check_every: u64,
    /// Number of documents that a check also reads over HTTP
    #[arg(long, default_value_t = 500)]
    reads: usize,
    /// Seed of the choice of requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
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

#[derive(Args)]
struct Hostile {
    /// Duration of the attack, in minutes
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Time before the attack, for comparison, in minutes
    #[arg(long, default_value_t = 2.0)]
    quiet_minutes: f64,
    /// Database of the host
    #[arg(long, default_value = "sqlite")]
    database: Backend,
}

#[tokio::main]
async fn main() -> ExitCode {
    let good = match Command::parse() {
        Command::Load(options) => load(&options).await,
        Command::Faults(options) => inject(&options).await,
        Command::Hostile(options) => attack(&options).await,
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn load(options: &Load) -> bool {
    let backend = options.database;
    let plan = Plan {
        backend,
        nodes: if backend == Backend::Sqlite { 1 } else { options.nodes },
        workspaces: options.workspaces,
        clients: options.clients,
        hang_up: options.hang_up,
        kills: options.kill,
        load: Duration::from_secs_f64(options.minutes * 60.0),
        check_every: Duration::from_secs(options.check_every),
        reads: options.reads,
        seed: options.seed,
    };
    println!("{plan:?}");
    let report = ledger::run(&plan, |line| println!("{line}")).await;
    println!("at the end: {report}");
    report.defects().is_empty()
}

async fn attack(options: &Hostile) -> bool {
    let minutes = |minutes: f64| Duration::from_secs_f64(minutes * 60.0);
    let week = AttackPlan {
        backend: options.database,
        quiet: minutes(options.quiet_minutes),
        attack: minutes(options.minutes),
    };
    let report = hostile::run(&week, |line| println!("{line}")).await;
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
