//! A PostgreSQL for this task: a new cluster in a temporary folder on a free loopback port, with
//! `fsync` on as in production (which costs nothing in memory). It is deleted at the end.
//!
//! It is stopped when dropped.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use rustix::fs::statvfs;
use rustix::process::{Pid, Signal, kill_process};
use xtask::cluster::{self, PostgresCluster};

use crate::{apt, process};

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);
/// Settings of every temporary PostgreSQL server of a task.
const SETTINGS: [&str; 4] =
    ["max_connections=400", "shared_buffers=128MB", "fsync=on", "synchronous_commit=on"];
/// Prefix of the temporary folders of PostgreSQL servers; the process id of the task follows.
const FOLDER: &str = "assurance-postgres-";
/// Folder in memory (tmpfs) for the database files of the tests.
const MEMORY_FOLDER: &str = "/dev/shm";
/// Free space, in bytes, from which the tests use [`MEMORY_FOLDER`]; they need a few hundred
/// megabytes. By default Linux permits half of the machine's memory.
const MIN_MEMORY_FOLDER_BYTES: u64 = 4 << 30;

/// A running temporary PostgreSQL server.
pub(crate) struct TemporaryPostgres {
    server: Child,
    cluster: PostgresCluster,
    folder: PathBuf,
    /// Version of the PostgreSQL server.
    pub(crate) version: String,
}

impl TemporaryPostgres {
    /// Starts a PostgreSQL server with the default log settings and waits until it responds.
    pub(crate) fn start() -> anyhow::Result<Self> {
        Self::start_in(&std::env::temp_dir(), &[])
    }

    /// Starts a PostgreSQL server for the many small databases of the tests: with its files in
    /// memory if there is room, because the 300 files of a new database take a second of a disk,
    /// and with a small write-ahead log, which would fill the disk or the memory otherwise.
    pub(crate) fn start_small() -> anyhow::Result<Self> {
        sweep(Path::new(MEMORY_FOLDER));
        let free = statvfs(MEMORY_FOLDER).map_or(0, |found| found.f_bavail * found.f_frsize);
        let folder = match free >= MIN_MEMORY_FOLDER_BYTES {
            true => MEMORY_FOLDER.into(),
            false => std::env::temp_dir(),
        };
        Self::start_in(&folder, &["max_wal_size=256MB"])
    }

    fn start_in(parent: &Path, settings: &[&str]) -> anyhow::Result<Self> {
        let programs = programs()?;
        sweep(parent);
        let folder = parent.join(format!("{FOLDER}{}", std::process::id()));
        make_folder(&folder)?;
        let cluster = PostgresCluster::create(&programs, &folder)?;
        let version = version(&programs)?;
        let server = cluster.launch(&[&SETTINGS[..], settings].concat())?;
        let mut postgres = Self { server, cluster, folder, version };
        postgres.wait_until_ready(&programs)?;
        Ok(postgres)
    }

    /// Returns the URL of the PostgreSQL server for clients: a superuser without a password.
    pub(crate) fn url(&self) -> String {
        self.database_url("postgres")
    }

    /// Returns the URL of one database of the server.
    pub(crate) fn database_url(&self, name: &str) -> String {
        self.cluster.url(name)
    }

    /// Creates an empty database. Returns its URL.
    pub(crate) fn create_database(&self, name: &str) -> anyhow::Result<String> {
        let mut command = Command::new(programs()?.join("createdb"));
        let port = self.cluster.port.to_string();
        command.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port, name]);
        process::run_quietly(&mut command)?;
        Ok(self.database_url(name))
    }

    fn wait_until_ready(&mut self, programs: &Path) -> anyhow::Result<()> {
        let ready = process::until(START_LIMIT, PAUSE, "PostgreSQL responds", || {
            if let Some(status) = self.server.try_wait()? {
                bail!("PostgreSQL ended at once ({status})");
            }
            Ok(self.answers(programs)?.then_some(()))
        });
        ready.map_err(|error| anyhow!("{error}\n{}", self.cluster.log()))
    }

    fn answers(&self, programs: &Path) -> anyhow::Result<bool> {
        let mut command = Command::new(programs.join("pg_isready"));
        let port = self.cluster.port.to_string();
        command.args(["-q", "-h", "127.0.0.1", "-U", "postgres", "-p", &port]);
        Ok(command.status().context("pg_isready does not start")?.success())
    }
}

impl Drop for TemporaryPostgres {
    /// Stops the PostgreSQL server with a fast shutdown (SIGINT), or after a timeout with an
    /// immediate one (SIGQUIT).
    fn drop(&mut self) {
        for signal in [Signal::INT, Signal::QUIT, Signal::KILL] {
            // An error means that the process has ended.
            let _ = kill_process(Pid::from_child(&self.server), signal);
            let ended = process::until(STOP_LIMIT, PAUSE, "PostgreSQL ends", || {
                Ok(self.server.try_wait()?)
            });
            if ended.is_ok() {
                break;
            }
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("{} stays: {error}", self.folder.display());
        }
    }
}

/// Returns the folder of the programs of the newest PostgreSQL; installs it if none is there.
fn programs() -> anyhow::Result<PathBuf> {
    if cluster::programs().is_none() {
        apt::install(&["postgresql"], "the tests need a PostgreSQL server")?;
    }
    cluster::programs().with_context(|| format!("no PostgreSQL server below {}", cluster::HOME))
}

fn version(programs: &Path) -> anyhow::Result<String> {
    let text = process::run_quietly(Command::new(programs.join("postgres")).arg("--version"))?;
    Ok(text.split_whitespace().nth(2).unwrap_or("of an unknown version").to_owned())
}

fn make_folder(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    Ok(())
}

/// Deletes temporary PostgreSQL folders of tasks that were killed.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix(FOLDER) else { continue };
        if !Path::new("/proc").join(pid).exists() {
            // Another user's folder, or already deleted; both are ignored.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
