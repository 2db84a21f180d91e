//! Measurements of one build of the service on one database.
//!
//! A lane with the capacity 0 runs no jobs, so that a backlog can be built up; the next start of
//! the server drains it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;

use super::postgres_cpu_us;
use super::receiver::WebhookReceiver;
use super::rows::SubjectRoundResults;
use crate::bench::load::{self, LoadExtent};
use crate::bench::server::{Server, ServerParameters};
use crate::bench::steady::{RequestWithExpectedResponse, SteadyLoad};
use crate::bench::{BuiltPrograms, CREATE, plan};
use crate::postgres::TemporaryPostgres;
use crate::process;

/// Number of requests that each enqueue a thousand jobs.
const BATCHES: u32 = 50;
const PATIENCE: Duration = Duration::from_secs(600);
/// Capacity of the lane of empty jobs: as many are written by one commit.
const CAPACITY: u32 = 64;

/// One build of the service on one database, measured in one round.
pub(super) struct MeasuredService<'a> {
    pub(super) programs: &'a BuiltPrograms,
    pub(super) postgres: &'a TemporaryPostgres,
    pub(super) backend: &'static str,
    /// Part of the names of databases and folders, which no other build or round uses.
    pub(super) name: String,
    pub(super) load: LoadExtent,
}

impl MeasuredService<'_> {
    fn plan(&self, what: &str, settings: &str) -> anyhow::Result<ServerParameters<'_>> {
        let name = format!("{what}-{}", self.name);
        let settings = format!(
            "[egress]\nallow_loopback = true\n\
             [limits]\nmax_workspaces_per_person = 10_000\n{settings}"
        );
        Ok(ServerParameters {
            settings,
            ..plan(self.programs, &name, self.backend, self.postgres)?
        })
    }

    /// Returns the URL or file of the database to which the measured POSTs write.
    pub(super) fn posts_database(&self) -> anyhow::Result<String> {
        let plan = self.plan("posts", "")?;
        let file = plan.folder.join("data/assurance.sqlite");
        Ok(plan.database.unwrap_or_else(|| file.display().to_string()))
    }

    /// Measures the rate at which support cases are created in this number of workspaces, of which
    /// the user's own has a webhook for another event.
    pub(super) fn posts(&self, workspaces: usize) -> anyhow::Result<SubjectRoundResults> {
        let mut server = Server::start(&self.plan("posts", "")?)?;
        subscribe(&server, "http://127.0.0.1:9/", "support_case.closed")?;
        if workspaces > 1 {
            server.spread_over(workspaces)?;
        }
        let run = |load| load::run(&server, &CREATE, load);
        run(LoadExtent { seconds: 1, ..self.load })?;
        let before = postgres_cpu_us()?;
        let posts = run(self.load)?;
        let requests = posts.requests_per_second * f64::from(self.load.seconds);
        let database_cpu_us = (postgres_cpu_us()? - before) / requests;
        Ok(SubjectRoundResults::of_load(&posts, database_cpu_us, due(&server)?))
    }

    /// Measures the creation of support cases at a fixed rate.
    pub(super) fn posts_at(&self, rate: u32) -> anyhow::Result<SubjectRoundResults> {
        let server = Server::start(&self.plan("steady", "")?)?;
        subscribe(&server, "http://127.0.0.1:9/", "support_case.closed")?;
        let steady = SteadyLoad::new(
            &server,
            rate,
            vec![RequestWithExpectedResponse::creating_case(&server)],
        );
        let lasting = |time: Duration| {
            steady.during(|| {
                std::thread::sleep(time);
                Ok(())
            })
        };
        lasting(Duration::from_secs(1))?;
        let (cpu, database) = (server.cpu_us()?, postgres_cpu_us()?);
        let seen = lasting(Duration::from_secs(self.load.seconds.into()))?;
        let requests = seen.requests as f64;
        Ok(SubjectRoundResults {
            per_second: seen.requests_per_second,
            cpu_us: (server.cpu_us()? - cpu) / requests,
            database_cpu_us: (postgres_cpu_us()? - database) / requests,
            latency: Some(seen.latency),
            waiting: due(&server)?,
            errors: seen.wrong.try_into()?,
        })
    }

    /// Measures how fast the events of new support cases are delivered to a receiver on this
    /// machine.
    pub(super) fn deliveries(&self) -> anyhow::Result<SubjectRoundResults> {
        let receiver = WebhookReceiver::start()?;
        let server = Server::start(&self.plan("deliveries", &lane("delivery", 0))?)?;
        subscribe(&server, &receiver.url, "support_case.created")?;
        load::run(&server, &CREATE, self.load)?;
        let jobs = due(&server)?;
        drop(server);
        let server = Server::start(&self.plan("deliveries", "")?)?;
        let drained = drain(&server, jobs)?;
        let received = receiver.received.load(Ordering::Relaxed);
        ensure!(received >= jobs, "{received} of {jobs} deliveries were received");
        Ok(drained)
    }

    /// Measures how fast jobs of a fixture that do nothing are run.
    pub(super) fn empty_jobs(&self, fixture: &str) -> anyhow::Result<SubjectRoundResults> {
        let component = format!("fixtures/{fixture}.wasm");
        let files = [component.as_str(), "queue.wasm", "areas.toml"];
        let areas = self.programs.areas_with(&format!("{fixture}-areas"), &files)?;
        let plan = |capacity| -> anyhow::Result<ServerParameters<'_>> {
            let plan = self.plan(fixture, &lane("maintenance", capacity))?;
            Ok(ServerParameters { areas: &areas, ..plan })
        };
        let server = Server::start(&plan(0)?)?;
        for _ in 0..BATCHES {
            let body = json!({ "jobs": 1_000, "idle": true });
            server.post(&format!("/fixtures/{fixture}"), Some(&body))?;
        }
        let jobs = due(&server)?;
        drop(server);
        drain(&Server::start(&plan(CAPACITY)?)?, jobs)
    }
}

/// Creates a webhook for an event.
pub(crate) fn subscribe(server: &Server, url: &str, event: &str) -> anyhow::Result<()> {
    server.post("/webhooks", Some(&json!({ "url": url, "events": [event] })))?;
    Ok(())
}

/// Returns the configuration of a lane of the job queue with this capacity.
fn lane(name: &str, capacity: u32) -> String {
    format!("[jobs.lanes.{name}]\ncapacity = {capacity}\n")
}

/// Waits until no job is due, and returns the rate for this number of jobs. The time begins when
/// the server serves.
fn drain(server: &Server, jobs: u64) -> anyhow::Result<SubjectRoundResults> {
    let (begun, cpu_before, database_before) =
        (Instant::now(), server.cpu_us()?, postgres_cpu_us()?);
    loop {
        let left = due(server)?;
        if left == 0 {
            break;
        }
        ensure!(begun.elapsed() < PATIENCE, "{left} of {jobs} jobs are left");
        std::thread::sleep(pause(begun.elapsed(), jobs, left));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let count = jobs as f64;
    Ok(SubjectRoundResults {
        per_second: count / seconds,
        cpu_us: (server.cpu_us()? - cpu_before) / count,
        database_cpu_us: (postgres_cpu_us()? - database_before) / count,
        latency: None,
        waiting: jobs,
        errors: 0,
    })
}

/// Returns half of the time that the rest of the jobs will take at the rate so far, between 20 ms
/// and 1 s. To read the queue more often would cost as much as running the jobs.
fn pause(elapsed: Duration, jobs: u64, left: u64) -> Duration {
    let done = jobs.saturating_sub(left).max(1);
    let rest = elapsed.mul_f64(left as f64 / done as f64 / 2.0);
    rest.clamp(Duration::from_millis(20), Duration::from_secs(1))
}

/// Waits until no job of the workspace is due or runs.
pub(crate) fn until_drained(server: &Server, pause: Duration) -> anyhow::Result<()> {
    process::until(PATIENCE, pause, "the queue is empty", || Ok((due(server)? == 0).then_some(())))
}

/// Returns the number of the workspace's jobs that are due or run.
pub(crate) fn due(server: &Server) -> anyhow::Result<u64> {
    let queue = server.get("/queue")?;
    let lanes = queue["lanes"].as_array().context("no lanes")?;
    let number = |lane: &serde_json::Value, name: &str| lane[name].as_u64().unwrap_or_default();
    Ok(lanes.iter().map(|lane| number(lane, "active") + number(lane, "queued")).sum())
}
