//! A PostgreSQL for this task: a new cluster in a temporary folder on a free loopback port, with
//! `fsync` on as in production. It is deleted at the end.
//!
//! It is stopped when dropped, and by the kernel (`setpriv --pdeathsig`) if this task is killed.
//! PostgreSQL refuses to run as root, so root runs it as the user `postgres`.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::{apt, process};

const HOME: &str = "/usr/lib/postgresql";
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(20);
/// Settings of every server.
const SETTINGS: [&str; 6] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=400",
    "shared_buffers=128MB",
    "fsync=on",
    "synchronous_commit=on",
];
/// Prefix of temporary folders; the process id of the task follows.
const FOLDER: &str = "assurance-postgres-";

/// A running server.
pub(crate) struct Postgres {
    server: Child,
    folder: PathBuf,
    port: u16,
    version: String,
}

impl Postgres {
    /// Starts a server with PostgreSQL's default log settings and waits until it responds.
    pub(crate) fn start() -> anyhow::Result<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with a small write-ahead log, for the many small databases of the tests,
    /// which would fill the disk otherwise.
    pub(crate) fn start_small() -> anyhow::Result<Self> {
        Self::start_with(&["max_wal_size=256MB"])
    }

    fn start_with(settings: &[&str]) -> anyhow::Result<Self> {
        let programs = programs()?;
        sweep();
        let folder = std::env::temp_dir().join(format!("{FOLDER}{}", std::process::id()));
        let user = User::choose()?;
        make_folder(&folder, &user)?;
        initialise(&programs, &folder, &user)?;
        let version = version(&programs)?;
        let port = free_port()?;
        let server = launch(&programs, &folder, &user, port, settings)?;
        let mut postgres = Self { server, folder, port, version };
        postgres.wait_until_ready(&programs)?;
        Ok(postgres)
    }

    /// Returns the URL for clients: a superuser without a password.
    pub(crate) fn url(&self) -> String {
        self.database_url("postgres")
    }

    /// Returns the URL of one database.
    pub(crate) fn database_url(&self, name: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{name}", self.port)
    }

    /// Creates an empty database. Returns its URL.
    pub(crate) fn create_database(&self, name: &str) -> anyhow::Result<String> {
        let mut command = Command::new(programs()?.join("createdb"));
        command.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string(), name]);
        process::run_quietly(&mut command)?;
        Ok(self.database_url(name))
    }

    /// Returns the server's version.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    fn wait_until_ready(&mut self, programs: &Path) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < START_LIMIT {
            if let Some(status) = self.server.try_wait()? {
                bail!("PostgreSQL ended at once ({status})\n{}", self.log());
            }
            if self.answers(programs)? {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("PostgreSQL did not start within {START_LIMIT:?}\n{}", self.log())
    }

    fn answers(&self, programs: &Path) -> anyhow::Result<bool> {
        let mut command = Command::new(programs.join("pg_isready"));
        command.args(["-q", "-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string()]);
        Ok(command.status().context("pg_isready does not start")?.success())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Postgres {
    /// Stops the server with a fast shutdown (SIGINT), or after a timeout with an immediate one
    /// (SIGQUIT).
    fn drop(&mut self) {
        for signal in [Signal::INT, Signal::QUIT, Signal::KILL] {
            if let Some(pid) = i32::try_from(self.server.id()).ok().and_then(Pid::from_raw) {
                // An error means that the process has ended.
                let _ = kill_process(pid, signal);
            }
            if ends_within(&mut self.server, STOP_LIMIT) {
                break;
            }
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("{} stays: {error}", self.folder.display());
        }
    }
}

/// The user that runs the server.
enum User {
    Myself,
    Other { uid: u32, gid: u32 },
}

impl User {
    fn choose() -> anyhow::Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Myself);
        }
        let users = fs::read_to_string("/etc/passwd")?;
        let line = users.lines().find(|line| line.starts_with("postgres:"));
        let line = line.context("PostgreSQL refuses root, and there is no user `postgres`")?;
        let fields: Vec<&str> = line.split(':').collect();
        ensure!(fields.len() > 3, "odd line in /etc/passwd: {line}");
        Ok(Self::Other { uid: fields[2].parse()?, gid: fields[3].parse()? })
    }

    /// Returns a command that ends with this task, run by this user.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "INT"]);
        if let Self::Other { uid, gid } = self {
            command.args(["--reuid", &uid.to_string(), "--regid", &gid.to_string()]);
            command.arg("--clear-groups");
        }
        command.arg(program);
        command
    }
}

/// Returns the folder of the newest installed version's programs.
fn programs() -> anyhow::Result<PathBuf> {
    if newest().is_none() {
        apt::install(&["postgresql"], "the tests need a PostgreSQL server")?;
    }
    newest().with_context(|| format!("no PostgreSQL server below {HOME}"))
}

fn newest() -> Option<PathBuf> {
    let versions = fs::read_dir(HOME).ok()?.flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .map(|(version, folder)| (version, folder.join("bin")))
        .filter(|(_, programs)| programs.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().map(|(_, programs)| programs)
}

fn version(programs: &Path) -> anyhow::Result<String> {
    let text = process::run_quietly(Command::new(programs.join("postgres")).arg("--version"))?;
    Ok(text.split_whitespace().nth(2).unwrap_or("of an unknown version").to_owned())
}

fn make_folder(folder: &Path, user: &User) -> anyhow::Result<()> {
    fs::create_dir(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    if let User::Other { uid, gid } = user {
        chown(folder, Some(*uid), Some(*gid))?;
    }
    Ok(())
}

fn initialise(programs: &Path, folder: &Path, user: &User) -> anyhow::Result<()> {
    let mut initdb = user.command(&programs.join("initdb"));
    initdb
        .current_dir(folder)
        .args(["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "-D"])
        .arg(folder.join("data"));
    process::run_quietly(&mut initdb)?;
    Ok(())
}

fn launch(
    programs: &Path,
    folder: &Path,
    user: &User,
    port: u16,
    settings: &[&str],
) -> anyhow::Result<Child> {
    let log = File::create(folder.join("log"))?;
    let mut server = user.command(&programs.join("postgres"));
    server.current_dir(folder).arg("-D").arg(folder.join("data")).args(["-p", &port.to_string()]);
    for setting in SETTINGS.iter().chain(settings) {
        server.args(["-c", setting]);
    }
    // A separate process group: an interruption at the terminal is for the tests, which still need
    // the server to end cleanly.
    std::os::unix::process::CommandExt::process_group(&mut server, 0);
    server.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    server.spawn().context("setpriv (of util-linux) does not start")
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn ends_within(child: &mut Child, limit: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Deletes folders of killed tasks.
fn sweep() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix(FOLDER) else { continue };
        if !Path::new("/proc").join(pid).exists() {
            // Another user's folder, or already deleted; both are ignored.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
