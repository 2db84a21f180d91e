//! One server of a benchmark: a host process with its own data, a user in a workspace, and a
//! session.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

use crate::process;

const START_LIMIT: Duration = Duration::from_secs(120);
const EMAIL: &str = "bench@example.com";

/// Parameters with which a benchmark starts a server.
pub(crate) struct ServerParameters<'a> {
    /// Program to start as the server: `assurance`, or the native twin of its areas.
    pub(crate) program: &'a Path,
    /// Arguments of the program before `--config FILE`.
    pub(crate) arguments: &'a [&'a str],
    /// Path of the program `assurance`, for the set-up commands.
    pub(crate) host: &'a Path,
    /// Folder of the server's data and configuration.
    pub(crate) folder: PathBuf,
    pub(crate) areas: &'a Path,
    /// Database URL; `None` means the embedded database.
    pub(crate) database: Option<String>,
    /// Further tables of the server's configuration, in TOML.
    pub(crate) settings: String,
    /// Folder that the nodes of a fleet share in addition to their database; `None` for a single
    /// node.
    pub(crate) fleet: Option<&'a Path>,
}

/// A running server of a benchmark; the process is stopped when this is dropped.
pub(crate) struct Server {
    child: Child,
    api: String,
    pub(crate) person: BenchUser,
    loads: AtomicU32,
    /// File with the ids of the workspaces among which a load is spread, one on each line; `None`
    /// if the load goes to the user's workspace alone.
    pub(crate) workspaces: Option<PathBuf>,
    /// Folder of the server's data.
    pub(crate) data: PathBuf,
    host: PathBuf,
    config: PathBuf,
    /// Time from the start of the server's process until it serves, in milliseconds.
    pub(crate) start_ms: f64,
}

/// The user of a benchmark, with the session and workspace of its requests.
#[derive(Clone)]
pub(crate) struct BenchUser {
    workspace: String,
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl Server {
    /// Creates the user, workspace and session, then starts the server's process.
    pub(crate) fn start(plan: &ServerParameters<'_>) -> anyhow::Result<Self> {
        let config = configure(plan)?;
        let workspace = people(plan.host, &config)?;
        let session = command(plan.host, &config, &["session", "create", "--user", EMAIL])?;
        let (cookie, csrf) = (member(&session, "cookie")?, member(&session, "csrf_token")?);
        Self::launch(plan, config, BenchUser { workspace, cookie, csrf })
    }

    /// Starts another node of this server's fleet. Its requests have the session of the same user.
    pub(crate) fn beside(&self, plan: &ServerParameters<'_>) -> anyhow::Result<Self> {
        Self::launch(plan, configure(plan)?, self.person.clone())
    }

    fn launch(
        plan: &ServerParameters<'_>,
        config: PathBuf,
        person: BenchUser,
    ) -> anyhow::Result<Self> {
        let (child, api, start_ms) = launch(plan, &config)?;
        Ok(Self {
            child,
            api,
            person,
            loads: AtomicU32::new(0),
            workspaces: None,
            data: plan.folder.join("data"),
            host: plan.host.to_owned(),
            config,
            start_ms,
        })
    }

    /// Creates another workspace of the user, to which all later requests go. Returns the former
    /// workspace.
    pub(crate) fn enter_new_workspace(&mut self, name: &str) -> anyhow::Result<String> {
        let made = self.command(&["workspace", "create", "--name", name, "--owner", EMAIL])?;
        Ok(self.enter(member(&made, "id")?))
    }

    /// Sends all later requests to this workspace. Returns the former one.
    pub(crate) fn enter(&mut self, workspace: String) -> String {
        std::mem::replace(&mut self.person.workspace, workspace)
    }

    /// Creates this number of workspaces of the user, among which later loads are spread.
    pub(crate) fn spread_over(&mut self, workspaces: usize) -> anyhow::Result<()> {
        let mut ids = String::new();
        for number in 0..workspaces {
            let made = self.create_workspace(&format!("spread-{number}"))?;
            ids.push_str(&member(&made, "id")?);
            ids.push('\n');
        }
        let file = self.config.with_extension("workspaces");
        fs::write(&file, ids)?;
        self.workspaces = Some(file);
        Ok(())
    }

    /// Runs a command of the program `assurance` and returns its JSON output.
    pub(crate) fn command(&self, arguments: &[&str]) -> anyhow::Result<Json> {
        command(&self.host, &self.config, arguments)
    }

    /// Returns the URL of a path below the user's workspace.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}/v1/workspaces/{}{path}", self.api, self.person.workspace)
    }

    /// Returns host and port of the server.
    pub(crate) fn address(&self) -> &str {
        self.api.trim_start_matches("http://")
    }

    /// Returns the path of the script with which wrk sends a load.
    pub(crate) fn script(&self) -> PathBuf {
        self.config.with_file_name("load.lua")
    }

    /// Returns a unique number for each load, so that idempotency keys never repeat.
    pub(crate) fn next_load(&self) -> u32 {
        self.loads.fetch_add(1, Ordering::Relaxed) + std::process::id() * 1000
    }

    /// Returns the processor time that the server has used so far, user and system, in microseconds
    /// (proc(5), fields 14 and 15, in ticks of 10 ms).
    pub(crate) fn cpu_us(&self) -> anyhow::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = stat.rsplit_once(") ").context("odd line in /proc/PID/stat")?.1;
        let ticks: u32 =
            fields.split(' ').skip(11).take(2).filter_map(|n| n.parse::<u32>().ok()).sum();
        Ok(f64::from(ticks) * 10_000.0)
    }

    /// Returns the maximum memory of the server's process so far, in bytes (`VmHWM` of proc(5)).
    pub(crate) fn peak_memory_bytes(&self) -> anyhow::Result<u64> {
        self.status_bytes("VmHWM")
    }

    /// Returns the memory of the server's process, in bytes (`VmRSS` of proc(5)).
    pub(crate) fn memory_bytes(&self) -> anyhow::Result<u64> {
        self.status_bytes("VmRSS")
    }

    fn status_bytes(&self, name: &str) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib = value.and_then(|value| value.trim().strip_suffix(" kB"));
        let kib = kib.with_context(|| format!("no {name} in /proc/PID/status"))?;
        Ok(kib.trim().parse::<u64>()? * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that the process has ended.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Writes the server's configuration, and wrk's script next to it. Returns the configuration's
/// path.
fn configure(plan: &ServerParameters<'_>) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(&plan.folder)?;
    let config = plan.folder.join("assurance.toml");
    fs::write(&config, configuration(plan))?;
    fs::write(plan.folder.join("load.lua"), include_str!("load.lua"))?;
    Ok(config)
}

fn configuration(plan: &ServerParameters<'_>) -> String {
    let fleet = plan.fleet.map(|shared| {
        let (blobs, key) = (shared.join("blobs"), shared.join("master.key"));
        format!("[blobs]\ndir = {blobs:?}\n[keys]\nmaster_key_file = {key:?}\n")
    });
    let database = plan.database.as_ref().map(|url| format!("[database]\nurl = {url:?}\n"));
    format!(
        "data_dir = {data:?}\ndevelopment = true\n\
         [api]\nlisten = \"127.0.0.1:0\"\n[operators]\nlisten = \"127.0.0.1:0\"\n\
         [areas]\ndir = {areas:?}\n[rates]\nenabled = false\n[session]\ncookie_secure = false\n\
         [log]\nfilter = \"error\"\n{database}{fleet}{settings}",
        data = plan.folder.join("data"),
        areas = plan.areas,
        database = database.unwrap_or_default(),
        fleet = fleet.unwrap_or_default(),
        settings = plan.settings,
    )
}

/// Creates the benchmark's user and workspace unless an earlier start did.
fn people(host: &Path, config: &Path) -> anyhow::Result<String> {
    let known = config.with_extension("workspace");
    if let Ok(workspace) = fs::read_to_string(&known) {
        return Ok(workspace);
    }
    command(host, config, &["user", "create", "--email", EMAIL])?;
    let made =
        command(host, config, &["workspace", "create", "--name", "Bench", "--owner", EMAIL])?;
    let workspace = member(&made, "id")?;
    fs::write(known, &workspace)?;
    Ok(workspace)
}

fn command(host: &Path, config: &Path, arguments: &[&str]) -> anyhow::Result<Json> {
    let mut command = Command::new(host);
    command.arg("--json").arg("--config").arg(config).args(arguments);
    Ok(serde_json::from_str(&process::run_quietly(&mut command)?)?)
}

fn member(answer: &Json, name: &str) -> anyhow::Result<String> {
    Ok(answer[name].as_str().with_context(|| format!("no {name} in {answer}"))?.to_owned())
}

fn launch(plan: &ServerParameters<'_>, config: &Path) -> anyhow::Result<(Child, String, f64)> {
    let serving = plan.folder.join("data/serving.json");
    // Remains of a killed process.
    let _ = fs::remove_file(&serving);
    let log = fs::File::create(plan.folder.join("log"))?;
    let begun = Instant::now();
    let mut child = Command::new(plan.program)
        .args(plan.arguments)
        .arg("--config")
        .arg(config)
        .stdout(log.try_clone()?)
        .stderr(log)
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("{} does not start", plan.program.display()))?;
    let api = process::until(START_LIMIT, Duration::from_millis(1), "the server serves", || {
        if let Some(status) = child.try_wait()? {
            bail!("the server ended at once ({status}): {}", plan.folder.join("log").display());
        }
        Ok(fs::read_to_string(&serving).ok().and_then(|text| api(&text)))
    })?;
    Ok((child, api, begun.elapsed().as_secs_f64() * 1e3))
}

fn api(serving: &str) -> Option<String> {
    let serving: Json = serde_json::from_str(serving).ok()?;
    Some(serving["api"].as_str()?.to_owned())
}
