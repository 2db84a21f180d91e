//! `cargo xtask bench --fairness`: how long a quiet workspace waits for its jobs, alone and beside a
//! workspace with very many.

use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::Serialize;
use serde_json::json;

use super::server::{Server, ServerParameters};
use super::size::{audit, data, repository, upload};
use super::steady::{RequestWithExpectedResponse, SteadyLoad};
use super::writes::{WebhookReceiver, due, subscribe, until_drained};
use super::{BuiltPrograms, machine, plan, report};
use crate::postgres::TemporaryPostgres;
use crate::process;
use crate::workspace::Workspace;

/// Number of audits that the busy workspace starts.
const AUDITS: usize = 60;
const RESULTS: usize = 2_000;
/// Number of events of the busy workspace before the measurement, for a receiver that accepts
/// connections and never responds.
const EVENTS: u32 = 50_000;
const EVENTS_PER_SECOND: u32 = 100;
/// Number of requests that each enqueue a thousand jobs of about 50 ms.
const JOB_CALLS: usize = 10;
/// Number of measurements of the quiet workspace; the median is reported.
const TIMES: usize = 5;
const PATIENCE: Duration = Duration::from_secs(600);

/// Times that one kind of work of the quiet workspace takes, alone and next to a busy workspace.
#[derive(Serialize)]
struct QuietWorkspaceTimes {
    backend: &'static str,
    quiet: &'static str,
    busy: &'static str,
    alone_ms: f64,
    beside_ms: f64,
    /// Number of jobs of the busy workspace that were due or running after the last measurement.
    busy_jobs_left: u64,
}

/// Measures the fairness between workspaces, prints the results and writes them to a file.
pub(crate) fn run(workspace: &Workspace, programs: &BuiltPrograms) -> anyhow::Result<()> {
    let postgres = TemporaryPostgres::start()?;
    let mut rows = Vec::new();
    for backend in ["sqlite", "postgres"] {
        let bench = Bench { programs, postgres: &postgres, backend };
        rows.push(bench.audits()?);
        rows.push(bench.deliveries()?);
        rows.push(bench.jobs()?);
    }
    println!("\nmachine: {}\n", machine()?);
    println!(
        "| quiet workspace | busy workspace | database | alone ms | beside ms | busy jobs left |"
    );
    println!("|---|---|---|---|---|---|");
    for row in &rows {
        let QuietWorkspaceTimes { backend, quiet, busy, alone_ms, beside_ms, busy_jobs_left } = row;
        println!(
            "| {quiet} | {busy} | {backend} | {alone_ms:.0} | {beside_ms:.0} | {busy_jobs_left} |"
        );
    }
    report::write(&workspace.target.join("bench-fairness.json"), &rows)
}

struct Bench<'a> {
    programs: &'a BuiltPrograms,
    postgres: &'a TemporaryPostgres,
    backend: &'static str,
}

impl Bench<'_> {
    fn start(&self, name: &str) -> anyhow::Result<Server> {
        eprintln!("{}: {name}", self.backend);
        let plan = plan(self.programs, name, self.backend, self.postgres)?;
        Server::start(&ServerParameters {
            settings: "[egress]\nallow_loopback = true\n".to_owned(),
            ..plan
        })
    }

    /// Measures the quiet workspace alone, then lets the busy one begin with `begin`, and measures
    /// the quiet one again, under the load that `begin` returns. If `begin` returns none, jobs of
    /// the busy workspace must be left at the end.
    fn compare(
        &self,
        mut server: Server,
        (quiet, busy): (&'static str, &'static str),
        begin: impl FnOnce(&Server) -> anyhow::Result<Option<SteadyLoad>>,
        mut measure: impl FnMut(&Server) -> anyhow::Result<Duration>,
    ) -> anyhow::Result<QuietWorkspaceTimes> {
        let noisy = server.enter_new_workspace("quiet")?;
        let alone_ms = median_ms(&server, &mut measure)?;
        let calm = server.enter(noisy);
        let load = begin(&server)?;
        let noisy = server.enter(calm);
        let mut beside_ms = 0.0;
        let mut measure_beside = || {
            beside_ms = median_ms(&server, &mut measure)?;
            Ok(())
        };
        match &load {
            Some(load) => {
                let wrong = load.during(measure_beside)?.wrong;
                ensure!(wrong == 0, "{wrong} requests of the busy workspace failed");
            }
            None => measure_beside()?,
        }
        server.enter(noisy);
        let busy_jobs_left = due(&server)?;
        ensure!(
            load.is_some() || busy_jobs_left > 0,
            "{busy} ended before the quiet workspace was measured"
        );
        Ok(QuietWorkspaceTimes {
            backend: self.backend,
            quiet,
            busy,
            alone_ms,
            beside_ms,
            busy_jobs_left,
        })
    }

    fn audits(&self) -> anyhow::Result<QuietWorkspaceTimes> {
        let server = self.start("fair-audits")?;
        let begin = |server: &Server| {
            let repository = repository(server, "busy")?;
            upload(server, &repository, "busy.sarif", &data::sarif(0, RESULTS))?;
            for _ in 0..AUDITS {
                server.post("/audits", Some(&json!({ "repository_id": repository })))?;
            }
            Ok(None)
        };
        let mut number = 0;
        let measure = |server: &Server| {
            number += 1;
            let repository = repository(server, &format!("quiet-{number}"))?;
            let begun = Instant::now();
            upload(server, &repository, "quiet.sarif", &data::sarif(0, 20))?;
            audit(server, &repository)?;
            Ok(begun.elapsed())
        };
        let names = ("upload and audit of 20 results", "60 audits of 2,000 results");
        self.compare(server, names, begin, measure)
    }

    fn deliveries(&self) -> anyhow::Result<QuietWorkspaceTimes> {
        let server = self.start("fair-deliveries")?;
        // Connections wait in the listener's backlog; none gets a response.
        let silent = TcpListener::bind("127.0.0.1:0")?;
        let silent_url = format!("http://{}/", silent.local_addr()?);
        let begin = |server: &Server| {
            subscribe(server, &silent_url, "support_case.created")?;
            server.create_cases(EVENTS)?;
            let create = RequestWithExpectedResponse::creating_case(server);
            Ok(Some(SteadyLoad::new(server, EVENTS_PER_SECOND, vec![create])))
        };
        let receiver = WebhookReceiver::start()?;
        let mut subscribed = false;
        let measure = |server: &Server| {
            if !std::mem::replace(&mut subscribed, true) {
                subscribe(server, &receiver.url, "support_case.created")?;
            }
            let (before, begun) = (receiver.received.load(Ordering::Relaxed), Instant::now());
            server.create_cases(1)?;
            process::until(PATIENCE, Duration::from_millis(1), "the event is delivered", || {
                Ok((receiver.received.load(Ordering::Relaxed) > before).then_some(()))
            })?;
            Ok(begun.elapsed())
        };
        let names =
            ("delivery of one event", "50,000 events, then 100/s, for a receiver that hangs");
        self.compare(server, names, begin, measure)
    }

    fn jobs(&self) -> anyhow::Result<QuietWorkspaceTimes> {
        let files = ["fixtures/enqueues-jobs.wasm", "queue.wasm", "areas.toml"];
        let areas = self.programs.areas_with("fair-jobs-areas", &files)?;
        eprintln!("{}: fair-jobs", self.backend);
        let plan = plan(self.programs, "fair-jobs", self.backend, self.postgres)?;
        let server = Server::start(&ServerParameters { areas: &areas, ..plan })?;
        const PATH: &str = "/fixtures/enqueues-jobs";
        let begin = |server: &Server| {
            for _ in 0..JOB_CALLS {
                server.post(PATH, Some(&json!({ "busy": true })))?;
            }
            Ok(None)
        };
        let measure = |server: &Server| {
            let begun = Instant::now();
            server.post(PATH, Some(&json!({ "jobs": 1, "what": "one" })))?;
            until_drained(server, Duration::from_millis(2))?;
            Ok(begun.elapsed())
        };
        self.compare(server, ("one empty job", "10,000 jobs of 50 ms"), begin, measure)
    }
}

fn median_ms(
    server: &Server,
    measure: &mut impl FnMut(&Server) -> anyhow::Result<Duration>,
) -> anyhow::Result<f64> {
    let times_ms = (0..TIMES).map(|_| Ok(measure(server)?.as_secs_f64() * 1e3));
    Ok(report::median(times_ms.collect::<anyhow::Result<_>>()?))
}
