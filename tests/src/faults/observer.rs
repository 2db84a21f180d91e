//! Somebody quiet who writes now and then, and reads whether the node is
//! ready, whatever happens around.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::Method;
use tokio::task::JoinHandle;

use crate::client::try_send;
use crate::ledger::{Shared, observe};
use crate::{Answer, Client};

/// Between two writes, and two reads of readiness.
const PAUSE: Duration = Duration::from_millis(250);
/// Readiness that takes longer is none.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    /// The status, and the checks that failed.
    readiness: Vec<(Instant, String)>,
    /// When it was sent, the status, and how long the response took.
    writes: Vec<(Instant, u16, Duration)>,
}

/// Watches a node until it is dropped.
#[derive(Debug)]
pub(super) struct Observer {
    seen: Arc<Mutex<Seen>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Observer {
    /// Writes to the last workspace of the load, to any node, and reads the
    /// readiness of one.
    pub(super) fn start(shared: &Arc<Shared>, operators: Arc<Mutex<String>>) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let readiness = tokio::spawn(read(Arc::clone(&seen), operators));
        let writes = tokio::spawn(write(Arc::clone(&seen), Arc::clone(shared)));
        Self { seen, tasks: vec![readiness, writes] }
    }

    /// What readiness said between two moments.
    pub(super) fn readiness(&self, from: Instant, to: Instant) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (_, said) in self.seen.lock().readiness.iter().filter(|s| s.0 >= from && s.0 < to) {
            *counts.entry(said.clone()).or_default() += 1;
        }
        counts
    }

    /// How long after a moment the first write that was sent later was
    /// acknowledged.
    pub(super) fn recovery(&self, repair: Instant) -> Option<Duration> {
        let seen = self.seen.lock();
        let good = seen.writes.iter().filter(|write| write.0 >= repair && write.1 / 100 == 2);
        good.map(|write| write.0 + write.2 - repair).min()
    }

    /// The longest that a write sent since then took.
    pub(super) fn longest(&self, since: Instant) -> Duration {
        let seen = self.seen.lock();
        let took = seen.writes.iter().filter(|write| write.0 >= since).map(|write| write.2);
        took.max().unwrap_or_default()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn read(seen: Arc<Mutex<Seen>>, operators: Arc<Mutex<String>>) {
    loop {
        let at = Instant::now();
        let client = Client::nobody(&operators.lock().clone());
        let request = client.request(Method::GET, "/health/ready").timeout(PATIENCE);
        let said = try_send(request).await.map_or_else(|_| "none".to_owned(), |it| told(&it));
        seen.lock().readiness.push((at, said));
        tokio::time::sleep(PAUSE).await;
    }
}

/// The status, and the checks that are not well.
fn told(answer: &Answer) -> String {
    let report = answer.json();
    let checks = report["checks"].as_object().into_iter().flatten();
    let failed = checks.filter(|(_, line)| *line != "ok").map(|(check, _)| check.as_str());
    std::iter::once(answer.status.to_string().as_str()).chain(failed).collect::<Vec<_>>().join(" ")
}

/// Each write is a task of its own: one that waits delays no other.
async fn write(seen: Arc<Mutex<Seen>>, shared: Arc<Shared>) {
    for number in 0.. {
        let (seen, shared) = (Arc::clone(&seen), Arc::clone(&shared));
        tokio::spawn(async move {
            let at = Instant::now();
            let status = observe(&shared, number).await;
            seen.lock().writes.push((at, status, at.elapsed()));
        });
        tokio::time::sleep(PAUSE).await;
    }
}
