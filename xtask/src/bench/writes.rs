//! `cargo xtask bench --writes`: writes, and what they set in motion.
//!
//! A lane with the capacity 0 runs no jobs, so that a backlog can be built up; the next start of
//! the server drains it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Serialize;
use serde_json::json;

use super::load::{self, Load};
use super::server::{Plan, Server};
use super::{CREATE, Options, Programs, machine, plan};
use crate::postgres::Postgres;
use crate::workspace::Workspace;

/// Number of calls that each enqueue a thousand jobs.
const BATCHES: u32 = 50;
const PATIENCE: Duration = Duration::from_secs(600);
/// Interval at which the queue is read.
const POLL: Duration = Duration::from_millis(200);

/// Results on one database.
#[derive(Serialize)]
struct Results {
    backend: &'static str,
    posts: load::LoadResults,
    /// Processor time of PostgreSQL for each POST, in microseconds.
    posts_database_cpu_us: f64,
    /// Jobs that were due at the end of the load.
    backlog: u64,
    deliveries: Drained,
    empty_jobs: Drained,
    /// Empty jobs of a kind of which one call runs up to 64.
    empty_jobs_together: Drained,
}

/// Speed and cost of draining a backlog.
#[derive(Serialize)]
struct Drained {
    jobs: u64,
    per_second: f64,
    /// Processor time of the server for each job, in microseconds.
    cpu_us: f64,
    /// Processor time of PostgreSQL for each job, in microseconds.
    database_cpu_us: f64,
}

/// Measures, prints and writes the report.
pub(crate) fn run(
    workspace: &Workspace,
    programs: &Programs,
    options: &Options,
) -> anyhow::Result<()> {
    let postgres = Postgres::start()?;
    let measured = ["sqlite", "postgres"].map(|backend| {
        let bench = Bench { programs, options, postgres: &postgres, backend };
        bench.measure()
    });
    let results: Vec<Results> = measured.into_iter().collect::<anyhow::Result<_>>()?;
    println!("\nmachine: {}\n", machine()?);
    println!("| what | database | per second | CPU µs | database's CPU µs | |");
    println!("|---|---|---|---|---|---|");
    for result in &results {
        result.print();
    }
    let path = workspace.target.join("bench-writes.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&results)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("\n{}", path.display());
    Ok(())
}

impl Results {
    fn print(&self) {
        let backend = self.backend;
        println!(
            "| POST support case, a webhook for another event | {backend} | {:.0} | {:.0} | {:.0} | \
             p50 {:.1} ms, p99 {:.1} ms, {} jobs behind |",
            self.posts.requests_per_second,
            self.posts.cpu_us_per_request,
            self.posts_database_cpu_us,
            self.posts.p50_ms,
            self.posts.p99_ms,
            self.backlog,
        );
        for (what, drained) in [
            ("webhook deliveries", &self.deliveries),
            ("empty jobs", &self.empty_jobs),
            ("empty jobs, together", &self.empty_jobs_together),
        ] {
            let Drained { jobs, per_second, cpu_us, database_cpu_us } = drained;
            println!(
                "| {what} | {backend} | {per_second:.0} | {cpu_us:.0} | {database_cpu_us:.0} | \
                 {jobs} waiting |"
            );
        }
    }
}

struct Bench<'a> {
    programs: &'a Programs,
    options: &'a Options,
    postgres: &'a Postgres,
    backend: &'static str,
}

impl Bench<'_> {
    fn measure(&self) -> anyhow::Result<Results> {
        let (posts, posts_database_cpu_us, backlog) = self.posts()?;
        let backend = self.backend;
        Ok(Results {
            backend,
            posts,
            posts_database_cpu_us,
            backlog,
            deliveries: self.deliveries()?,
            empty_jobs: self.empty_jobs("enqueues-jobs")?,
            empty_jobs_together: self.empty_jobs("runs-together")?,
        })
    }

    fn plan(&self, name: &str, settings: &str) -> anyhow::Result<Plan<'_>> {
        let settings = format!("[egress]\nallow_loopback = true\n{settings}");
        Ok(Plan { settings, ..plan(self.programs, name, self.backend, self.postgres)? })
    }

    /// Creates support cases in a workspace with a webhook for another event.
    fn posts(&self) -> anyhow::Result<(load::LoadResults, f64, u64)> {
        eprintln!("{}: posts", self.backend);
        let server = Server::start(&self.plan("posts", "")?)?;
        let url = "http://127.0.0.1:9/";
        server
            .post("/webhooks", Some(&json!({ "url": url, "events": ["support_case.closed"] })))?;
        let load = Load { connections: self.options.connections, seconds: self.options.seconds };
        let run = |load| load::run(&server, &CREATE, load, &self.programs.script);
        run(Load { seconds: 1, ..load })?;
        let before = postgres_cpu_us()?;
        let posts = run(load)?;
        let requests = posts.requests_per_second * f64::from(load.seconds);
        let database_cpu_us = (postgres_cpu_us()? - before) / requests;
        Ok((posts, database_cpu_us, due(&server)?))
    }

    /// Delivers the events of new support cases to a receiver on this machine.
    fn deliveries(&self) -> anyhow::Result<Drained> {
        eprintln!("{}: webhook deliveries", self.backend);
        let receiver = Receiver::start()?;
        let server = Server::start(&self.plan("deliveries", &lane("delivery", 0))?)?;
        let webhook = json!({ "url": receiver.url, "events": ["support_case.created"] });
        server.post("/webhooks", Some(&webhook))?;
        let load = Load { connections: self.options.connections, seconds: self.options.seconds };
        load::run(&server, &CREATE, load, &self.programs.script)?;
        let jobs = due(&server)?;
        drop(server);
        let server = Server::start(&self.plan("deliveries", "")?)?;
        let drained = drain(&server, jobs)?;
        let received = receiver.received.load(Ordering::Relaxed);
        ensure!(received >= jobs, "{received} of {jobs} deliveries were received");
        Ok(drained)
    }

    fn empty_jobs(&self, fixture: &str) -> anyhow::Result<Drained> {
        eprintln!("{}: empty jobs of {fixture}", self.backend);
        let areas = self.programs.folder.join(format!("{fixture}-areas"));
        std::fs::create_dir_all(&areas)?;
        let component = format!("{fixture}.wasm");
        let from = self.programs.areas.join("fixtures").join(&component);
        std::fs::copy(from, areas.join(&component))?;
        let queue = "queue.wasm";
        std::fs::copy(self.programs.areas.join(queue), areas.join(queue))?;
        let grants = "areas.toml";
        std::fs::copy(self.programs.areas.join(grants), areas.join(grants))?;
        let plan = |capacity| -> anyhow::Result<Plan<'_>> {
            let plan = self.plan(fixture, &lane("maintenance", capacity))?;
            Ok(Plan { areas: &areas, ..plan })
        };
        let server = Server::start(&plan(0)?)?;
        for _ in 0..BATCHES {
            let body = json!({ "jobs": 1_000, "idle": true });
            server.post(&format!("/fixtures/{fixture}"), Some(&body))?;
        }
        let jobs = due(&server)?;
        drop(server);
        drain(&Server::start(&plan(16)?)?, jobs)
    }
}

/// Returns the settings of a lane with this capacity.
fn lane(name: &str, capacity: u32) -> String {
    format!("[jobs.lanes.{name}]\ncapacity = {capacity}\n")
}

/// Waits until no job is due. The time begins when the server serves.
fn drain(server: &Server, jobs: u64) -> anyhow::Result<Drained> {
    let (begun, cpu_before, database_before) =
        (Instant::now(), server.cpu_us()?, postgres_cpu_us()?);
    while due(server)? > 0 {
        ensure!(begun.elapsed() < PATIENCE, "the queue is not empty after {PATIENCE:?}");
        std::thread::sleep(POLL);
    }
    let seconds = begun.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let count = jobs as f64;
    Ok(Drained {
        jobs,
        per_second: count / seconds,
        cpu_us: (server.cpu_us()? - cpu_before) / count,
        database_cpu_us: (postgres_cpu_us()? - database_before) / count,
    })
}

/// Returns the number of the workspace's jobs that are due or run.
pub(super) fn due(server: &Server) -> anyhow::Result<u64> {
    let queue = server.get("/queue")?;
    let lanes = queue["lanes"].as_array().context("no lanes")?;
    let number = |lane: &serde_json::Value, name: &str| lane[name].as_u64().unwrap_or_default();
    Ok(lanes.iter().map(|lane| number(lane, "active") + number(lane, "queued")).sum())
}

/// Returns the processor time of all PostgreSQL processes so far, in microseconds.
fn postgres_cpu_us() -> anyhow::Result<f64> {
    let mut ticks = 0;
    for process in std::fs::read_dir("/proc")? {
        // A process may end meanwhile; most entries are no processes.
        let Ok(stat) = std::fs::read_to_string(process?.path().join("stat")) else { continue };
        if let Some((name, fields)) = stat.rsplit_once(") ")
            && name.ends_with("(postgres")
        {
            let times = fields.split(' ').skip(11).take(2);
            ticks += times.filter_map(|time| time.parse::<u32>().ok()).sum::<u32>();
        }
    }
    Ok(f64::from(ticks) * 10_000.0)
}

/// A receiver of webhooks that accepts and counts every message.
pub(super) struct Receiver {
    pub(super) url: String,
    pub(super) received: Arc<AtomicU64>,
}

impl Receiver {
    /// Starts the receiver; it ends with the process.
    pub(super) fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/", listener.local_addr()?);
        let received = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&received);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                std::thread::spawn(move || answer(connection, &count));
            }
        });
        Ok(Self { url, received })
    }
}

/// Answers the requests of one connection until the client closes it.
fn answer(connection: TcpStream, count: &AtomicU64) -> std::io::Result<()> {
    let mut writer = connection.try_clone()?;
    let mut reader = BufReader::new(connection);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 0 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line == "\r\n" {
            std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
            count.fetch_add(1, Ordering::Relaxed);
            writer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
        }
        line.clear();
    }
    Ok(())
}
