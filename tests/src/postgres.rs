//! A PostgreSQL cluster of one test, which it may stop and start.
//!
//! PostgreSQL refuses to run as root, so root runs it as the user `postgres`. The kernel kills it
//! (`setpriv --pdeathsig`) if the test is killed.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;

const HOME: &str = "/usr/lib/postgresql";
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster; it is deleted when dropped.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    user: Option<(u32, u32)>,
    folder: TempDir,
    port: u16,
    server: Option<Child>,
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
        let user = rustix::process::geteuid().is_root().then(user).flatten();
        let folder = tempfile::Builder::new().prefix("assurance-cluster-").tempdir_in(place);
        let folder = folder.expect("a temporary folder");
        let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr());
        let port = port.expect("a free port").port();
        let mut cluster = Self { programs, user, folder, port, server: None };
        cluster.initialise();
        cluster.launch().await;
        Some(cluster)
    }

    /// Returns the URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.address())
    }

    /// Returns host and port.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Stops the server and closes every connection (fast shutdown).
    pub fn stop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let pid = i32::try_from(server.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, Signal::INT).expect("a running server");
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
        let log = File::create(self.folder.path().join("log")).expect("a log file");
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).args(["-p", &self.port.to_string()]);
        for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off"] {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a handle")).stderr(log);
        self.server = Some(command.spawn().expect("setpriv (of util-linux) starts"));
        let begun = Instant::now();
        while PgConnection::connect(&self.url()).await.is_err() {
            let log = fs::read_to_string(self.folder.path().join("log"));
            assert!(begun.elapsed() < PATIENCE, "PostgreSQL does not answer: {log:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn initialise(&self) {
        if let Some((uid, gid)) = self.user {
            chown(self.folder.path(), Some(uid), Some(gid)).expect("the folder changes hands");
        }
        let mut command = self.command("initdb");
        command.args(["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "-D"]);
        let output = command.arg(self.data()).output().expect("setpriv (of util-linux) starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.current_dir(self.folder.path()).args(["--pdeathsig", "INT"]);
        if let Some((uid, gid)) = self.user {
            command.args(["--reuid", &uid.to_string(), "--regid", &gid.to_string()]);
            command.arg("--clear-groups");
        }
        command.arg(self.programs.join(program));
        command
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

/// Returns the folder of the newest installed version's programs.
#[must_use]
pub fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(HOME).ok()?.flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .map(|(version, folder)| (version, folder.join("bin")))
        .filter(|(_, programs)| programs.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().map(|(_, programs)| programs)
}

/// Returns the ids of the user `postgres`.
fn user() -> Option<(u32, u32)> {
    let users = fs::read_to_string(Path::new("/etc/passwd")).ok()?;
    let line = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut ids = line.split(':').skip(2).map_while(|field| field.parse().ok());
    Some((ids.next()?, ids.next()?))
}
