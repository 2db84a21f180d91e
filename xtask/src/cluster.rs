//! A PostgreSQL cluster in a folder, with a server on a free loopback port.
//!
//! The kernel stops the server (`setpriv --pdeathsig`) if this process is killed. PostgreSQL
//! refuses to run as root, so root runs it as the user `postgres`.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

use crate::process;

/// Folder in which Debian installs the versions of PostgreSQL.
pub const HOME: &str = "/usr/lib/postgresql";

/// Settings of every PostgreSQL server that this module starts.
const SETTINGS: [&str; 2] = ["listen_addresses=127.0.0.1", "unix_socket_directories="];

/// A temporary PostgreSQL cluster: a data folder with its server. The caller deletes the folder.
#[derive(Debug)]
pub struct PostgresCluster {
    programs: PathBuf,
    folder: PathBuf,
    /// Ids of the user and group that run the server; `None` for those of this process.
    user: Option<(u32, u32)>,
    /// TCP port of the PostgreSQL server.
    pub port: u16,
}

impl PostgresCluster {
    /// Creates a PostgreSQL cluster in an existing folder, with the programs in the folder
    /// `programs`.
    ///
    /// # Errors
    /// `initdb` fails, or this process is root and there is no user `postgres`.
    pub fn create(programs: &Path, folder: &Path) -> anyhow::Result<Self> {
        let user = rustix::process::geteuid().is_root().then(user).transpose()?;
        if let Some((uid, gid)) = user {
            chown(folder, Some(uid), Some(gid))?;
        }
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let cluster = Self { programs: programs.to_owned(), folder: folder.to_owned(), user, port };
        let mut initdb = cluster.command("initdb");
        initdb.args(["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "-D"]);
        process::run_quietly(initdb.arg(folder.join("data")))?;
        Ok(cluster)
    }

    /// Starts the PostgreSQL server with further settings, each `NAME=VALUE`.
    ///
    /// # Errors
    /// `setpriv` does not start.
    pub fn launch(&self, settings: &[&str]) -> anyhow::Result<Child> {
        let log = File::create(self.folder.join("log"))?;
        let mut server = self.command("postgres");
        server.arg("-D").arg(self.folder.join("data")).args(["-p", &self.port.to_string()]);
        for setting in SETTINGS.iter().chain(settings) {
            server.args(["-c", setting]);
        }
        // A separate process group: an interruption at the terminal is for the tests, which still
        // need the server to end cleanly.
        server.process_group(0).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        server.spawn().context("setpriv (of util-linux) does not start")
    }

    /// Returns the log of the PostgreSQL server that was started last.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Returns the URL of a database for a superuser without a password.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Returns a command that runs a PostgreSQL program and ends with this process.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.current_dir(&self.folder).args(["--pdeathsig", "INT"]);
        if let Some((uid, gid)) = self.user {
            command.args(["--reuid", &uid.to_string(), "--regid", &gid.to_string()]);
            command.arg("--clear-groups");
        }
        command.arg(self.programs.join(program));
        command
    }
}

/// Returns the folder of the programs of the newest installed PostgreSQL; `None` if none is
/// installed.
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

/// Returns the ids of the user `postgres` and of its group.
fn user() -> anyhow::Result<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd")?;
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    let line = line.context("PostgreSQL refuses root, and there is no user `postgres`")?;
    let mut ids = line.split(':').skip(2).map_while(|field| field.parse().ok());
    ids.next().zip(ids.next()).with_context(|| format!("odd line in /etc/passwd: {line}"))
}
