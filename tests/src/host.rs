//! A host for one test: the real binary with its own data folder, database, free ports, and the
//! areas that the test names.
//!
//! The process is killed when the test ends. A failed test prints the end of the log. A successful
//! test checks that the log contains no secrets.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use test_database::TestDatabase;
use toml::{Table, Value as Toml};

use crate::{Backend, Client, place, within};

const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(60);
const LOG_LINES_SHOWN: usize = 30;
const LOG_COLUMNS_SHOWN: usize = 500;
/// Master key of all test hosts: 32 bytes in base64.
const MASTER_KEY: &str = "YSBtYXN0ZXIga2V5IG9mIHRoZSB0ZXN0cywgMzIgYi4=";

/// All areas of the service.
pub const AREAS: &[&str] = &[
    "assistant",
    "catalog",
    "context",
    "control-room",
    "dependencies",
    "evidence",
    "groups",
    "identity",
    "invitations",
    "ownership",
    "questionnaires",
    "queue",
    "remediation",
    "repohost",
    "schedules",
    "support",
    "uploads",
    "webhooks",
];

/// Configuration of a host.
#[derive(Debug)]
pub struct Builder {
    backend: Backend,
    components: Vec<PathBuf>,
    config: Table,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    place: PathBuf,
    /// File of the log; `None` for the default in the folder.
    log: Option<PathBuf>,
}

/// A running host.
#[derive(Debug)]
pub struct TestHost {
    folder: TempDir,
    process: Option<Child>,
    /// Configuration with which the host was prepared.
    builder: Builder,
    /// Base URL of the API.
    pub api: String,
    /// Base URL of the operators' API.
    pub operators: String,
    /// Texts that must not be in the log.
    secrets: Vec<String>,
    /// Database of this host, or shared with hosts built by `beside`.
    _database: Option<TestDatabase>,
}

impl Builder {
    /// Returns a builder with development mode, no area, and high rate limits.
    #[must_use]
    pub fn new(backend: Backend) -> Self {
        let builder = Self {
            backend,
            components: vec![],
            config: Table::new(),
            arguments: vec![],
            environment: vec![],
            place: std::env::temp_dir(),
            log: None,
        };
        builder
            .set("development", true)
            .set("api.listen", "127.0.0.1:0")
            // Low, because no load balancer has to notice. Tests of stopping set their own value.
            .set("api.shutdown_delay_ms", 100)
            .set("operators.listen", "127.0.0.1:0")
            .set("session.cookie_secure", false)
            .set("rates.enabled", false)
            // High, so that a busy machine does not cause timeouts. Tests of deadlines set their
            // own value.
            .set("limits.deadline_ms", 15_000)
            // Low, because the cost of passwords is tested elsewhere.
            .set("passwords.memory_kib", 64)
            .set("passwords.iterations", 1)
            .set("log.format", "json")
            // One key for all tests, because it authenticates the shared cache of compiled areas.
            .set("keys.master_key", MASTER_KEY)
            .set("runtime.cache_dir", place::cache().to_string_lossy().into_owned())
    }

    /// Adds these areas.
    #[must_use]
    pub fn areas(mut self, names: &[&str]) -> Self {
        let files = names.iter().map(|name| place::areas().join(name).with_extension("wasm"));
        self.components.extend(files);
        self
    }

    /// Adds these fixture guests.
    #[must_use]
    pub fn fixtures(mut self, names: &[&str]) -> Self {
        let files = names.iter().map(|name| place::fixtures().join(name).with_extension("wasm"));
        self.components.extend(files);
        self
    }

    /// Sets a configuration key, given with dots.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Into<Toml>) -> Self {
        set_key(&mut self.config, key, value.into());
        self
    }

    /// Shares the database and the blobs of another host, like nodes of a fleet.
    #[must_use]
    pub fn beside(self, host: &TestHost) -> Self {
        let url = host.builder.config["database"]["url"].clone();
        let folder = host.folder.path().join("data/blobs").to_string_lossy().into_owned();
        let builder = self.set("database.url", url);
        match host.builder.config.get("blobs") {
            Some(bucket) => builder.set("blobs", bucket.clone()),
            None => builder.set("blobs.dir", folder),
        }
    }

    /// Adds an argument to `assurance serve`.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Sets an environment variable of the process that serves.
    #[must_use]
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Stores all files below this folder.
    #[must_use]
    pub fn within(mut self, place: &Path) -> Self {
        place.clone_into(&mut self.place);
        self
    }

    /// Writes the host's output to this file; the test cannot read it then.
    #[must_use]
    pub fn logs_to(mut self, path: &str) -> Self {
        self.log = Some(path.into());
        self
    }

    /// Prepares folder, database and configuration without starting the host.
    pub async fn prepare(mut self) -> TestHost {
        let folder = tempfile::Builder::new().prefix("assurance-test-").tempdir_in(&self.place);
        let folder = folder.expect("a temporary folder");
        let areas = folder.path().join("areas");
        fs::create_dir(&areas).expect("a folder of areas");
        let needs = place::areas().join("areas.toml");
        fs::copy(&needs, areas.join("areas.toml")).expect("areas.toml; cargo xtask guests");
        for component in &self.components {
            let name = component.file_name().expect("a file");
            let copied = fs::copy(component, areas.join(name));
            assert!(
                copied.is_ok(),
                "{}: {copied:?}; cargo xtask guests --fixtures",
                component.display()
            );
        }
        let mut database = None;
        if self.backend == Backend::Postgres && !self.config.contains_key("database") {
            let fresh = TestDatabase::create().await.expect("a PostgreSQL server");
            self = self.set("database.url", fresh.url());
            database = Some(fresh);
        }
        self = self
            .set("data_dir", folder.path().join("data").to_string_lossy().into_owned())
            .set("areas.dir", areas.to_string_lossy().into_owned());
        let config = toml::to_string(&self.config).expect("a configuration");
        fs::write(folder.path().join("assurance.toml"), config).expect("a configuration file");
        TestHost {
            folder,
            process: None,
            builder: self,
            api: String::new(),
            operators: String::new(),
            secrets: Vec::new(),
            _database: database,
        }
    }

    /// Starts the host and waits until it serves.
    pub async fn start(self) -> TestHost {
        let mut host = self.prepare().await;
        host.start().await;
        host
    }
}

impl TestHost {
    /// Starts the process, possibly again, and waits until it serves. A busy machine may not open
    /// a connection to the database in time; then the process starts once more, as a service
    /// manager would start it.
    pub async fn start(&mut self) {
        let mut started = self.try_start(START_LIMIT).await;
        if started.as_ref().is_err_and(|why| why.contains("pool timed out")) {
            started = self.try_start(START_LIMIT).await;
        }
        if let Err(why) = started {
            panic!("{why}");
        }
    }

    /// Starts a host that may refuse to start.
    ///
    /// # Errors
    /// The last line of its output, or that it did not serve within `limit`.
    pub async fn try_start(&mut self, limit: Duration) -> Result<(), String> {
        let begun = Instant::now();
        let _ = fs::remove_file(self.serving_file());
        let path = self.builder.log.clone().unwrap_or_else(|| self.log_file());
        let log = File::options().create(true).append(true).open(path);
        let log = log.expect("a log file");
        let mut command = self.command(&["serve"]);
        command.args(&self.builder.arguments).envs(self.builder.environment.iter().cloned());
        command.stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a second handle")).stderr(log);
        self.process = Some(command.spawn().expect("the host starts"));
        let serving = loop {
            if let Some(serving) = self.serving() {
                break serving;
            }
            let ended = self.process.as_mut().and_then(|p| p.try_wait().expect("its state"));
            if let Some(status) = ended {
                let log = self.log();
                let last = log.lines().next_back().unwrap_or_default();
                return Err(format!("the host ended ({status}): {last}"));
            }
            if begun.elapsed() > limit {
                return Err(format!("the host does not serve within {limit:?}"));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        self.api = serving["api"].as_str().expect("an address").to_owned();
        self.operators = serving["operators"].as_str().expect("an address").to_owned();
        Ok(())
    }

    /// Sets an environment variable for the next start.
    pub fn set_environment(&mut self, name: &str, value: &str) {
        let environment = &mut self.builder.environment;
        environment.retain(|(known, _)| known != name);
        environment.push((name.to_owned(), value.to_owned()));
    }

    /// Sets configuration keys for the next start.
    pub fn configure(&self, keys: &[(&str, Toml)]) {
        let file = self.folder.path().join("assurance.toml");
        let text = fs::read_to_string(&file).expect("a configuration");
        let mut config: Table = text.parse().expect("TOML");
        for (key, value) in keys {
            set_key(&mut config, key, value.clone());
        }
        fs::write(&file, config.to_string()).expect("a configuration file");
    }

    /// Returns a command of the binary with this host's configuration and a clean environment.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(place::binary());
        clear_environment(&mut command);
        command.current_dir(self.folder.path()).args(arguments);
        command.arg("--config").arg(self.folder.path().join("assurance.toml"));
        command
    }

    /// Returns the folder with all files of this host.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file into the folder, in which commands run. Returns its name.
    pub fn write<'n>(&self, name: &'n str, content: &[u8]) -> &'n str {
        fs::write(self.folder.path().join(name), content).expect("written");
        name
    }

    /// Returns the URL of this host's database if it is on a server.
    #[must_use]
    pub fn database_url(&self) -> Option<String> {
        Some(self.builder.config.get("database")?.get("url")?.as_str()?.to_owned())
    }

    /// Returns the folder from which areas are loaded.
    #[must_use]
    pub fn areas(&self) -> PathBuf {
        self.folder.path().join("areas")
    }

    /// Returns the process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("a running host").id()
    }

    /// Whether the last started process is running.
    pub fn is_alive(&mut self) -> bool {
        let process = self.process.as_mut();
        process.is_some_and(|process| process.try_wait().expect("its state").is_none())
    }

    /// Returns the complete log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Waits until the log contains this text.
    pub async fn wait_for_log(&self, text: &str, limit: Duration) {
        let what = format!("the log contains {text:?}");
        within(limit, what, async || self.log().contains(text)).await;
    }

    /// Adds a text that the log must not contain when the test ends.
    pub fn keep_secret(&mut self, secret: &str) {
        self.secrets.push(secret.to_owned());
    }

    /// Kills the process, like a power failure.
    pub fn kill9(&mut self) {
        let mut process = self.process.take().expect("a running host");
        process.kill().expect("killed");
        process.wait().expect("gone");
    }

    /// Sends SIGTERM and waits until the process has ended.
    pub async fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait().await
    }

    /// Stops the host, sets configuration keys, and starts it again, at another address.
    pub async fn restart(&mut self, keys: &[(&str, Toml)]) {
        self.terminate().await;
        self.configure(keys);
        self.start().await;
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("a running host");
        kill_process(Pid::from_child(process), signal).expect("a running host");
    }

    /// Waits for the process to end.
    pub async fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        let mut process = self.process.take().expect("a running host");
        loop {
            if let Some(status) = process.try_wait().expect("its state") {
                return status;
            }
            if begun.elapsed() > STOP_LIMIT {
                self.process = Some(process);
                panic!("the host does not end");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Returns an anonymous client.
    #[must_use]
    pub fn nobody(&self) -> Client {
        Client::nobody(&self.api)
    }

    fn serving(&self) -> Option<Value> {
        serde_json::from_str(&fs::read_to_string(self.serving_file()).ok()?).ok()
    }

    fn serving_file(&self) -> PathBuf {
        self.folder.path().join("data/serving.json")
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("host.log")
    }

    fn show_log(&self) {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        eprintln!("the host's log ends:");
        for line in &lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..] {
            eprintln!("{}", line.chars().take(LOG_COLUMNS_SHOWN).collect::<String>());
        }
    }
}

/// Removes the variables that configure the service from a command's environment.
pub fn clear_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ASSURANCE_") {
            command.env_remove(name);
        }
    }
}

/// Returns a member of `/proc/PID/status` (proc(5)) such as `VmRSS`, in KiB; `None` if the process
/// has ended.
#[must_use]
pub fn memory_kib(pid: u32, member: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(member)?.strip_prefix(':'))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Sets a configuration key, given with dots.
fn set_key(config: &mut Table, key: &str, value: Toml) {
    let mut table = config;
    let (path, last) = key.rsplit_once('.').unwrap_or(("", key));
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let child = table.entry(part).or_insert_with(|| Table::new().into());
        table = child.as_table_mut().expect("a section");
    }
    table.insert(last.to_owned(), value);
}

impl Drop for TestHost {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Fails only if the process has ended.
            let _ = process.kill();
            let _ = process.wait();
        }
        if std::thread::panicking() {
            self.show_log();
            return;
        }
        let log = self.log();
        for secret in &self.secrets {
            assert!(!log.contains(secret.as_str()), "a secret is in the log: {secret}");
        }
    }
}
