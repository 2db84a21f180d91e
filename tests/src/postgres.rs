//! A PostgreSQL cluster of one test, which it may stop and start.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;
use xtask::cluster::{HOME, PostgresCluster};

pub use xtask::cluster::programs;

use crate::within;

const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster; it is deleted when dropped.
#[derive(Debug)]
pub struct Postgres {
    cluster: PostgresCluster,
    server: Option<Child>,
    /// Deleted after the server has ended.
    _folder: TempDir,
}

impl Postgres {
    /// Creates and starts a cluster. Returns `None`, with a note on the console, if its programs
    /// are not installed.
    pub async fn start() -> Option<Self> {
        Self::start_within(&std::env::temp_dir()).await
    }

    /// Creates and starts a cluster with its files below this folder.
    pub async fn start_within(place: &Path) -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("skipped: no PostgreSQL below {HOME} (Debian: apt-get install postgresql)");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("assurance-cluster-").tempdir_in(place);
        let folder = folder.expect("a temporary folder");
        let cluster = PostgresCluster::create(&programs, folder.path()).expect("a cluster");
        let mut postgres = Self { cluster, server: None, _folder: folder };
        postgres.launch().await;
        Some(postgres)
    }

    /// Returns the URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        self.cluster.url("postgres")
    }

    /// Returns host and port.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.cluster.port)
    }

    /// Stops the server and closes every connection (fast shutdown).
    pub fn stop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        kill_process(Pid::from_child(&server), Signal::INT).expect("a running server");
        server.wait().expect("its end");
    }

    /// Sends a signal to every process of the server.
    pub fn signal(&self, signal: Signal) {
        let server = self.server.as_ref().expect("a running server").id();
        for pid in std::iter::once(server).chain(children(server)) {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
            // A process of one connection may have ended.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills every process of the server.
    pub fn kill9(&mut self) {
        self.signal(Signal::KILL);
        self.server.take().expect("a running server").wait().expect("its end");
    }

    /// Whether the last started server is running.
    pub fn is_alive(&mut self) -> bool {
        let server = self.server.as_mut();
        server.is_some_and(|server| server.try_wait().expect("its state").is_none())
    }

    /// Starts the server and waits until it responds.
    pub async fn launch(&mut self) {
        self.server = Some(self.cluster.launch(&["fsync=off"]).expect("the server starts"));
        within(PATIENCE, "PostgreSQL answers", async || {
            PgConnection::connect(&self.url()).await.map_err(|_| self.cluster.log())
        })
        .await;
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the child processes of a process.
fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in parentheses, may contain spaces.
        let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
        after.split(' ').nth(1).is_some_and(|ppid| ppid == parent.to_string())
    };
    numbers.filter(is_child).collect()
}
