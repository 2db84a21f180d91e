//! Test setup for a fault: nodes under load, an observer, and components that can fail.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::disk::Disk;
use super::observer::Observer;
use super::{Fault, Needs, Row};
use crate::bucket::Bucket;
use crate::ledger::{Cluster, Load, Plan, replay_observed};
use crate::postgres::Postgres;
use crate::{Backend, Balancer, Builder, TestHost};

/// Number of workspaces under load.
const WORKSPACES: usize = 10;
/// Maximum time until writes work again.
const RECOVERY: Duration = Duration::from_secs(60);

/// The setup for a fault. Fields are dropped in this order.
pub(super) struct Stage {
    pub(super) observer: Observer,
    pub(super) load: Load,
    pub(super) tasks: Vec<JoinHandle<()>>,
    pub(super) neighbour: Option<TestHost>,
    pub(super) cluster: Cluster,
    pub(super) line: Option<Balancer>,
    pub(super) postgres: Option<Postgres>,
    disk: Option<Disk>,
    /// Address of the observed node's readiness endpoint.
    pub(super) operators: Arc<Mutex<String>>,
    pub(super) notes: Arc<Mutex<Vec<String>>>,
    fault_at: Instant,
    repair_at: Instant,
}

impl Stage {
    /// Starts the setup.
    ///
    /// # Errors
    /// This machine cannot run the fault; the reason.
    pub(super) async fn set(needs: Needs, backend: Backend, seed: u64) -> Result<Self, String> {
        let sqlite = backend == Backend::Sqlite;
        let disk = match needs {
            Needs::SmallDisk => Some(Disk::small(if sqlite { 150 } else { 400 })?),
            Needs::LoopDisk => Some(Disk::looped()?),
            _ => None,
        };
        let own = matches!(needs, Needs::OwnPostgres | Needs::Line | Needs::SmallDisk) && !sqlite;
        let place = disk.as_ref().map_or_else(std::env::temp_dir, Disk::root);
        let postgres = match own {
            true => Some(Postgres::start_within(&place).await.ok_or("no PostgreSQL programs")?),
            false => None,
        };
        let bucket = (needs == Needs::Bucket).then(Bucket::fresh);
        let line = match (&postgres, &bucket) {
            (_, Some(bucket)) => Some(line_to(bucket.endpoint.trim_start_matches("http://")).await),
            (Some(postgres), None) if needs == Needs::Line => {
                Some(line_to(&postgres.address()).await)
            }
            _ => None,
        };
        let url = postgres.as_ref().map(|postgres| match &line {
            Some(line) => format!("postgres://postgres@{}/postgres", line.address()),
            None => postgres.url(),
        });
        let shape = |_, mut builder: Builder| {
            if let Some(disk) = disk.as_ref().filter(|_| sqlite) {
                builder = builder.within(&disk.root());
            }
            if let Some(url) = &url {
                builder = builder.set("database.url", url.as_str());
            }
            if let (Some(bucket), Some(line)) = (&bucket, &line) {
                let endpoint = format!("http://{}", line.address());
                builder = bucket.keeps_blobs_of(builder).set("blobs.endpoint", endpoint);
            }
            builder
        };
        let nodes = if needs == Needs::SecondNode { 2 } else { 1 };
        let (mut cluster, tenants) = Cluster::start(backend, nodes, WORKSPACES, shape).await;
        if let Some(postgres) = &postgres {
            cluster.database = postgres.url();
        }
        let plan = Plan { clients: 10, workspaces: WORKSPACES, seed, ..Plan::short(backend) };
        let load = Load::start(&cluster, tenants, &plan).await;
        let operators = Arc::new(Mutex::new(cluster.nodes[0].operators.clone()));
        let observer = Observer::start(load.shared(), Arc::clone(&operators));
        let (notes, now) = (Arc::default(), Instant::now());
        let (tasks, neighbour) = (Vec::new(), None);
        let (fault_at, repair_at) = (now, now);
        Ok(Self {
            observer,
            load,
            tasks,
            neighbour,
            cluster,
            line,
            postgres,
            disk,
            operators,
            notes,
            fault_at,
            repair_at,
        })
    }

    /// Marks the beginning of the fault.
    pub(super) fn mark_fault(&mut self) {
        self.fault_at = Instant::now();
        self.load.shared().book.with(|pages| pages.statuses.clear());
    }

    /// Marks the end of the fault.
    pub(super) fn mark_repair(&mut self) {
        self.repair_at = Instant::now();
    }

    /// Waits until the observer's writes are acknowledged again.
    pub(super) async fn until_writes_work(&self) {
        while self.observer.recovery(self.repair_at).is_none()
            && self.repair_at.elapsed() < RECOVERY
        {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Ends the load and checks the database.
    pub(super) async fn finish(mut self, fault: Fault, note: String) -> Row {
        self.let_go();
        let readiness = self.observer.readiness(self.fault_at, self.repair_at);
        let longest = self.observer.longest(self.fault_at);
        let recovery = self.observer.recovery(self.repair_at);
        drop(self.observer);
        let shared = Arc::clone(self.load.shared());
        let mut defects = replay_observed(&shared).await;
        let report = self.load.finish(&self.cluster).await;
        for (kind, places) in report.defects() {
            defects.extend(places.iter().map(|place| format!("{kind}: {place}")));
        }
        let notes = std::mem::take(&mut *self.notes.lock());
        let notes: Vec<String> =
            std::iter::once(note).chain(notes).filter(|note| !note.is_empty()).collect();
        Row {
            fault,
            backend: self.cluster.backend,
            statuses: report.by_status(),
            readiness,
            longest,
            recovery,
            acknowledged: report.acknowledged,
            defects,
            note: notes.join("; "),
            skipped: None,
        }
    }

    /// Returns the disk of the setup.
    pub(super) fn disk(&self) -> &Disk {
        self.disk.as_ref().expect("a stage with a disk")
    }

    /// Ends tasks and processes that a fault started.
    pub(super) fn let_go(&mut self) {
        self.tasks.drain(..).for_each(|task| task.abort());
        self.neighbour = None;
    }

    /// Observes the readiness of another node.
    pub(super) fn watch(&self, node: usize) {
        self.operators.lock().clone_from(&self.cluster.nodes[node].operators);
    }
}

async fn line_to(address: &str) -> Balancer {
    Balancer::start(vec![address.to_owned()]).await
}
