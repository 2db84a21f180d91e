//! The ledger test: clients write with every operation of the service, and each response is
//! compared with the database. Acknowledged writes must be stored once, with their content and
//! event; refused ones must not be stored.
//!
//! `cargo xtask ledger` runs it for hours, the end-to-end tests for seconds.

mod book;
mod check;
mod cluster;
mod database;
mod hang_up;
mod mix;
mod report;
mod tenant;
mod worker;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinHandle;

pub use self::book::RequestLog;
pub use self::cluster::{Addresses, Cluster};
pub use self::report::Report;
pub use self::tenant::Tenant;
pub use self::worker::{LedgerState, Worker, observe, replay_observed};

use self::book::{Effect, Entry};
use self::check::{Check, Versions};
use self::database::Database;
use crate::envelope::now;
use crate::{Backend, Client};

/// Time within which abandoned requests end.
const STRAGGLERS: Duration = Duration::from_secs(3);
/// Maximum time for jobs after the last write.
const QUIET: Duration = Duration::from_secs(180);
/// Number of concurrent reads over HTTP.
const READERS: usize = 8;

/// Parameters of a load, also as options of a command.
#[derive(Clone, Debug, Args)]
pub struct Plan {
    /// Database of the nodes
    #[arg(long = "database", default_value = "postgres")]
    pub backend: Backend,
    /// Number of nodes; SQLite has one
    #[arg(long, default_value_t = 1)]
    pub nodes: usize,
    /// Number of workspaces under load
    #[arg(long, default_value_t = 4)]
    pub workspaces: usize,
    /// Number of clients that write
    #[arg(long, default_value_t = 12)]
    pub clients: u64,
    /// Number of clients that reset their connections up to 350 ms after sending
    #[arg(long, default_value_t = 0, default_missing_value = "8", num_args = 0..=1)]
    pub hang_up: u64,
    /// Number of times that a random node is killed and restarted. The load continues until all are
    /// done
    #[arg(long = "kill", default_value_t = 0)]
    pub kills: u32,
    /// Duration of the load, in minutes
    #[arg(long = "minutes", default_value = "1", value_parser = minutes)]
    pub load: Duration,
    /// Interval between two checks of the database, in seconds
    #[arg(long, default_value = "120", value_parser = seconds)]
    pub check_every: Duration,
    /// Number of documents that a check also reads over HTTP
    #[arg(long, default_value_t = 500)]
    pub reads: usize,
    /// Seed of the choice of requests
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Plan {
    /// Returns a load of some seconds on one node.
    #[must_use]
    pub fn short(backend: Backend) -> Self {
        Self {
            backend,
            nodes: 1,
            workspaces: 3,
            clients: 12,
            hang_up: 0,
            kills: 0,
            load: Duration::from_secs(6),
            check_every: Duration::from_secs(300),
            reads: 300,
            seed: 1,
        }
    }
}

/// Parses a number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Parses a number of minutes.
pub(crate) fn minutes(text: &str) -> Result<Duration, String> {
    seconds(text).map(|minutes| minutes * 60)
}

/// A running load.
#[derive(Debug)]
pub struct Load {
    shared: Arc<LedgerState>,
    tasks: Vec<JoinHandle<()>>,
    versions: Versions,
    since: i64,
    begun: Instant,
    reads: usize,
    report: Report,
    rng: StdRng,
}

/// Starts nodes and a load, and checks the result. `tell` receives progress lines.
pub async fn run(plan: &Plan, tell: impl Fn(String)) -> Report {
    let shape = |_, builder: crate::Builder| builder;
    let (mut cluster, tenants) =
        Cluster::start(plan.backend, plan.nodes, plan.workspaces, shape).await;
    let mut load = Load::start(&cluster, tenants, plan).await;
    let (begun, mut checked, mut kills) = (Instant::now(), Instant::now(), 0);
    while begun.elapsed() < plan.load || kills < plan.kills {
        if kills < plan.kills {
            tokio::time::sleep(Duration::from_millis(load.rng.random_range(100..2_000))).await;
            let node = load.rng.random_range(0..cluster.nodes.len());
            cluster.kill(node).await;
            kills += 1;
            load.report.kills = kills;
        } else {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        if checked.elapsed() > plan.check_every {
            load.check(&cluster).await;
            checked = Instant::now();
            tell(format!("after {} s: {}", begun.elapsed().as_secs(), load.report));
        }
    }
    load.finish(&cluster).await
}

impl Load {
    /// Starts the clients of a plan.
    pub async fn start(cluster: &Cluster, tenants: Vec<Tenant>, plan: &Plan) -> Self {
        let mut rng = StdRng::seed_from_u64(plan.seed);
        let since = now().0;
        let mut versions = HashMap::new();
        let mut database = Database::of(cluster).await;
        database.copy_events().await;
        for stored in database.documents(0).await {
            versions.insert(stored.id, stored.version);
        }
        let shared = Arc::new(LedgerState {
            book: RequestLog::new(rng.random()),
            addresses: cluster.addresses.clone(),
            tenants,
            gate: tokio::sync::RwLock::new(()),
            stop: AtomicBool::new(false),
            observed: Mutex::default(),
        });
        let seeds = (0..plan.clients).map(|number| plan.seed * 1_000 + number);
        let workers = seeds.map(|seed| tokio::spawn(Worker::new(&shared, seed).work()));
        let mut tasks: Vec<_> = workers.collect();
        tasks.extend((0..plan.hang_up).map(|number| {
            tokio::spawn(hang_up::work(Arc::clone(&shared), plan.seed * 1_000 + 500 + number))
        }));
        let (begun, report) = (Instant::now(), Report::default());
        Self { shared, tasks, versions, since, begun, reads: plan.reads, report, rng }
    }

    /// Returns the state shared by all clients.
    #[must_use]
    pub fn shared(&self) -> &Arc<LedgerState> {
        &self.shared
    }

    /// Waits for running requests, checks everything since the last check, and continues the load.
    pub async fn check(&mut self, cluster: &Cluster) -> &Report {
        let shared = Arc::clone(&self.shared);
        let _quiet = shared.gate.write().await;
        tokio::time::sleep(STRAGGLERS).await;
        let until = now().0;
        let mut database = Database::of(cluster).await;
        database.freeze().await;
        let check = Check::read(&shared.book, &mut database, self.since, &mut self.report).await;
        let made = check.run(&mut database, &mut self.versions).await;
        self.since = until;
        self.read(made).await;
        self.report.take_counts(&shared.book);
        self.report.load = self.begun.elapsed();
        &self.report
    }

    /// Ends the load, waits for the jobs, and checks.
    pub async fn finish(mut self, cluster: &Cluster) -> Report {
        self.shared.stop.store(true, Ordering::Relaxed);
        for task in std::mem::take(&mut self.tasks) {
            task.await.expect("no panic");
        }
        let load = self.begun.elapsed();
        let mut database = Database::of(cluster).await;
        let begun = Instant::now();
        while database.due(now().0).await > 0 && begun.elapsed() < QUIET {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.check(cluster).await;
        self.report.load = load;
        self.report.unfinished = database.unfinished().await;
        self.report.given_up = database.given_up().await;
        self.report
    }

    /// Reads some of the acknowledged documents over HTTP.
    async fn read(&mut self, mut made: Vec<(String, Entry)>) {
        let readable = |entry: &Entry| matches!(&entry.effect, Effect::Creates(kind, _) if kind.read_at.is_some());
        made.retain(|(_, entry)| readable(entry));
        while made.len() > self.reads {
            made.swap_remove(self.rng.random_range(0..made.len()));
        }
        let mut missing = Vec::new();
        for some in made.chunks(READERS) {
            let mut reads = Vec::new();
            for (id, entry) in some {
                let base = self.shared.addresses.any(&mut self.rng);
                reads.push(read_one(&self.shared, base, id, entry));
            }
            missing.extend(futures::future::join_all(reads).await);
        }
        self.report.read += missing.len() as u64;
        self.report.lost.extend(missing.into_iter().flatten());
    }
}

/// Reads a document over HTTP. Returns what is wrong with it; `None` if it is right.
async fn read_one(shared: &LedgerState, base: String, id: &str, entry: &Entry) -> Option<String> {
    let Effect::Creates(kind, _) = &entry.effect else { return None };
    let of_entry = |tenant: &&Tenant| tenant.owner.workspace.replace('-', "") == entry.workspace;
    let tenant = shared.tenants.iter().find(of_entry)?;
    let client = Client { base, ..tenant.owner.clone() };
    let collection = kind.read_at?;
    let answer = client.get(&format!("/v1/workspaces/{{ws}}/{collection}/{id}")).await;
    let found = answer.status == 200 && answer.json()["id"] == id;
    (!found).then(|| format!("{collection}/{id} read as {}: {}", answer.status, answer.text()))
}
