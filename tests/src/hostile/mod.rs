//! The hostile test: all hostile components, documents, clients and receivers at once, next to ten
//! well-behaved tenants. The report compares the tenants' latencies with those before the attack.

pub mod attackers;
mod report;
mod tenants;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use parking_lot::Mutex;
use reqwest::Method;
use tokio::task::{JoinHandle, JoinSet};

pub use self::report::Report;

use self::attackers::{Attack, Target};
use self::tenants::Sample;
use crate::client::try_send;
use crate::host::{AREAS, memory_kib};
use crate::ledger::minutes;
use crate::{Backend, Builder, Client, TestHost};

/// Components that misbehave when called.
const CALLED: [&str; 9] = [
    "infinite-loop",
    "bulk-memory-loop",
    "memory-hog",
    "stack-overflow",
    "trap",
    "giant-reply",
    "host-call-flood",
    "log-flood",
    "holds-turn",
];
const TENANTS: usize = 10;
/// Maximum time until the host is ready after the attack.
const REST: Duration = Duration::from_secs(30);

/// Parameters of the test, also as options of a command.
#[derive(Clone, Copy, Debug, Args)]
pub struct AttackPlan {
    /// Database of the host
    #[arg(long = "database", default_value = "sqlite")]
    pub backend: Backend,
    /// Time before the attack, for comparison, in minutes
    #[arg(long = "quiet-minutes", default_value = "2", value_parser = minutes)]
    pub quiet: Duration,
    /// Duration of the attack, in minutes
    #[arg(long = "minutes", default_value = "10", value_parser = minutes)]
    pub attack: Duration,
}

/// Number of responses to each attacker, by response.
pub(super) type Outcomes = BTreeMap<(&'static str, String), u64>;

/// Results shared by all tasks.
#[derive(Debug, Default)]
pub(super) struct Records {
    outcomes: Mutex<Outcomes>,
    samples: Mutex<Vec<Sample>>,
    readiness: Mutex<BTreeMap<String, u64>>,
    peak_bytes: AtomicU64,
}

impl Records {
    /// Counts a response to an attacker by its status and problem code.
    pub(super) fn count(&self, attacker: &'static str, outcome: String) {
        *self.outcomes.lock().entry((attacker, outcome)).or_default() += 1;
    }
}

/// Runs the test.
pub async fn run(week: &AttackPlan, tell: impl Fn(String)) -> Report {
    let builder = Builder::new(week.backend).areas(AREAS).fixtures(&CALLED);
    let builder = builder.set("egress.allow_loopback", true).set("limits.deadline_ms", 5_000);
    let builder = builder.set("rates.enabled", true);
    let mut host = builder.prepare().await;
    let owner = host.create_person("mallory");
    let hostile = host.create_workspace("hostile", &owner);
    let people: Vec<_> = (0..TENANTS).map(|n| host.create_person(&format!("tenant{n}"))).collect();
    let workspaces: Vec<_> =
        (0..TENANTS).map(|n| host.create_workspace(&format!("tenant{n}"), &people[n])).collect();
    host.start().await;
    let mallory = host.sign_in(&owner, &hostile);
    let clients: Vec<_> =
        people.iter().zip(&workspaces).map(|(person, ws)| host.sign_in(person, ws)).collect();
    let (records, pid) = (Arc::new(Records::default()), host.pid());
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(tenants::work(client, Arc::clone(&records)));
    }
    let watcher = watch(&host, Arc::clone(&records));
    tell(format!("{TENANTS} tenants work, {:?} without an attack", week.quiet));
    tokio::time::sleep(week.quiet).await;
    let from = Instant::now();
    tell(format!("the attack begins, for {:?}", week.attack));
    let attack = Attack::start(Target {
        api: host.api.clone(),
        operators: Client::nobody(&host.operators).machine(&host.operators_token()),
        mallory,
        nobody: host.nobody(),
        victim: people[0].email.clone(),
        records: Arc::clone(&records),
    })
    .await;
    tokio::time::sleep(week.attack).await;
    let to = Instant::now();
    attack.end();
    tell(format!("the attack has ended; at most {REST:?} of rest"));
    let ready_after = rested(&host).await;
    tasks.shutdown().await;
    watcher.abort();
    let same_process = host.is_alive() && host.pid() == pid;
    report::summarize(&records, (from, to), ready_after, same_process)
}

/// Waits until `/health/ready` returns 200, at most [`REST`]. Returns its last status.
async fn rested(host: &TestHost) -> u16 {
    let begun = Instant::now();
    loop {
        let status = host.operate(Method::GET, "/health/ready").await.status;
        if status == 200 || begun.elapsed() > REST {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Reads readiness and memory every half second.
fn watch(host: &TestHost, records: Arc<Records>) -> JoinHandle<()> {
    let (operators, pid) = (host.operators.clone(), host.pid());
    tokio::spawn(async move {
        loop {
            let request = Client::nobody(&operators).request(Method::GET, "/health/ready");
            let answer = try_send(request.timeout(Duration::from_secs(2))).await;
            let said = answer.map_or("none".to_owned(), |answer| answer.status.to_string());
            *records.readiness.lock().entry(said).or_default() += 1;
            let resident_kib = memory_kib(pid, "VmRSS").unwrap_or(0);
            records.peak_bytes.fetch_max(resident_kib * 1_024, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    })
}
