//! An observer that periodically writes and reads the readiness during a fault.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::Method;
use tokio::task::JoinHandle;

use crate::client::try_send;
use crate::ledger::{LedgerState, observe};
use crate::{Answer, Client};

/// Interval between two writes, and between two readiness probes.
const PAUSE: Duration = Duration::from_millis(250);
/// Timeout of a readiness probe.
const PATIENCE: Duration = Duration::from_secs(2);

/// Observations so far.
#[derive(Debug, Default)]
struct ObserverState {
    /// Time of each readiness probe, and its status with the failed checks.
    readiness: Vec<(Instant, String)>,
    /// Start, status and duration of each write.
    writes: Vec<(Instant, u16, Duration)>,
}

/// Observes a node until dropped.
#[derive(Debug)]
pub(super) struct Observer {
    seen: Arc<Mutex<ObserverState>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Observer {
    /// Starts to write to the last workspace of the load on any node, and to probe the readiness of
    /// one node.
    pub(super) fn start(shared: &Arc<LedgerState>, operators: Arc<Mutex<String>>) -> Self {
        let seen = Arc::<Mutex<ObserverState>>::default();
        let readiness = tokio::spawn(read(Arc::clone(&seen), operators));
        let writes = tokio::spawn(write(Arc::clone(&seen), Arc::clone(shared)));
        Self { seen, tasks: vec![readiness, writes] }
    }

    /// Returns the readiness results between two times, counted.
    pub(super) fn readiness(&self, from: Instant, to: Instant) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (_, said) in self.seen.lock().readiness.iter().filter(|s| s.0 >= from && s.0 < to) {
            *counts.entry(said.clone()).or_default() += 1;
        }
        counts
    }

    /// Returns the time from the repair to the first acknowledged write that was sent after it.
    pub(super) fn recovery(&self, repair: Instant) -> Option<Duration> {
        let seen = self.seen.lock();
        let good = seen.writes.iter().filter(|write| write.0 >= repair && write.1 / 100 == 2);
        good.map(|write| write.0 + write.2 - repair).min()
    }

    /// Returns the longest duration of a write sent since then.
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

async fn read(seen: Arc<Mutex<ObserverState>>, operators: Arc<Mutex<String>>) {
    loop {
        let at = Instant::now();
        let client = Client::nobody(&operators.lock().clone());
        let request = client.request(Method::GET, "/health/ready").timeout(PATIENCE);
        let said = try_send(request).await.map_or_else(|_| "none".to_owned(), |it| told(&it));
        seen.lock().readiness.push((at, said));
        tokio::time::sleep(PAUSE).await;
    }
}

/// Formats the status of a readiness probe with the failed checks.
fn told(answer: &Answer) -> String {
    let report = answer.json();
    let checks = report["checks"].as_object().into_iter().flatten();
    let failed = checks.filter(|(_, line)| *line != "ok").map(|(check, _)| check.as_str());
    std::iter::once(answer.status.to_string().as_str()).chain(failed).collect::<Vec<_>>().join(" ")
}

/// Sends one write in a separate task, so that a slow one does not delay others.
async fn write(seen: Arc<Mutex<ObserverState>>, shared: Arc<LedgerState>) {
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
