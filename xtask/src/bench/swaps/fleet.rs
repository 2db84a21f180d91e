//! Deployments to a fleet: three nodes with one PostgreSQL, one blob folder and one master key on
//! this machine. The command deploys to the first node, and clients call every node until it serves
//! the new version.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::json;

use super::versions::Versions;
use super::{DEPLOYMENTS, HELLO_PATH, PATIENCE, VERSIONS};
use crate::bench::report::Latency;
use crate::bench::server::{Server, ServerParameters};
use crate::bench::{BuiltPrograms, alone};
use crate::postgres::TemporaryPostgres;
use crate::process;

const NODES: usize = 3;
/// Pause between two requests with which a client waits for a new version.
const LOOK: Duration = Duration::from_millis(5);

/// Times from a deployment until every node of a fleet serves the deployed version.
#[derive(Serialize)]
pub(super) struct FleetMeasurement {
    pub(super) nodes: usize,
    pub(super) component_bytes: usize,
    pub(super) fresh: FleetSwapTimes,
    pub(super) cached: FleetSwapTimes,
}

/// Times of the same deployments, measured in two ways.
#[derive(Serialize)]
pub(super) struct FleetSwapTimes {
    /// Time printed by `area deploy --activate`: from its request until the last node reported the
    /// version.
    pub(super) printed: Latency,
    /// Time from the start of that command until the last node's client got a response of the
    /// version.
    pub(super) answered: Latency,
}

/// Starts a fleet, deploys versions to it, and measures the times.
pub(super) fn deployments(
    programs: &BuiltPrograms,
    postgres: &TemporaryPostgres,
) -> anyhow::Result<FleetMeasurement> {
    eprintln!("deployments to {NODES} nodes");
    let versions = Versions::read(&programs.areas)?;
    let nodes = Nodes::start(programs, postgres)?;
    for number in 0..VERSIONS {
        nodes.deploy(&versions.greeting(number)?.0)?;
    }
    let fresh = (0..DEPLOYMENTS).map(|number| nodes.observe(&versions, 1_000 + number));
    let fresh = FleetSwapTimes::of(fresh.collect::<anyhow::Result<_>>()?);
    // By now each version has left the nodes' memory and its machine code is cached on disk.
    let cached = (0..DEPLOYMENTS).map(|number| nodes.observe(&versions, number % VERSIONS));
    let cached = FleetSwapTimes::of(cached.collect::<anyhow::Result<_>>()?);
    let component_bytes = versions.hello(0).len();
    Ok(FleetMeasurement { nodes: NODES, component_bytes, fresh, cached })
}

impl FleetSwapTimes {
    /// Splits the pairs of printed and observed times, in milliseconds, into two series.
    fn of(times_ms: Vec<[f64; 2]>) -> Self {
        let (printed, answered) = times_ms.into_iter().map(<(f64, f64)>::from).unzip();
        Self { printed: Latency::of(printed), answered: Latency::of(answered) }
    }
}

struct Nodes {
    nodes: Vec<Server>,
    /// Path of the deployed component file; its name is the area's.
    component: PathBuf,
}

impl Nodes {
    fn start(programs: &BuiltPrograms, postgres: &TemporaryPostgres) -> anyhow::Result<Self> {
        let database = postgres.create_database("fleet")?;
        let shared = programs.folder.join("fleet");
        let areas = shared.join("areas");
        fs::create_dir_all(&areas)?;
        let mut nodes = Vec::<Server>::new();
        for number in 0..NODES {
            let plan = ServerParameters {
                database: Some(database.clone()),
                fleet: Some(&shared),
                ..alone(programs, &format!("fleet/node-{number}"), &areas)
            };
            nodes.push(match nodes.first() {
                Some(first) => first.beside(&plan)?,
                None => Server::start(&plan)?,
            });
        }
        Ok(Self { nodes, component: shared.join("hello.wasm") })
    }

    /// Deploys a component. Returns the time printed by the command, in milliseconds.
    fn deploy(&self, component: &[u8]) -> anyhow::Result<f64> {
        fs::write(&self.component, component)?;
        let file = self.component.to_str().context("a path that is not UTF-8")?;
        let told = self.nodes[0].command(&["area", "deploy", file, "--activate"])?;
        let printed = told["on_every_node_ms"].as_f64();
        printed.with_context(|| format!("the version is not on every node: {told}"))
    }

    /// Deploys a version while clients wait for it at every node. Returns the time printed by the
    /// command, and when the last client got its response.
    fn observe(&self, versions: &Versions, number: usize) -> anyhow::Result<[f64; 2]> {
        let (component, greeting) = versions.greeting(number)?;
        let (greeting, begun) = (greeting.as_str(), Instant::now());
        std::thread::scope(|scope| {
            let wait = |node| scope.spawn(move || until_answered(node, greeting, begun));
            let clients: Vec<_> = self.nodes.iter().map(wait).collect();
            let printed = self.deploy(&component)?;
            let mut last = 0.0;
            for client in clients {
                let answered =
                    client.join().map_err(|_| anyhow::anyhow!("a client ended early"))?;
                last = answered?.max(last);
            }
            Ok([printed, last])
        })
    }
}

/// Waits until a node responds with this greeting. Returns the time since `begun` in milliseconds.
fn until_answered(node: &Server, greeting: &str, begun: Instant) -> anyhow::Result<f64> {
    let body = json!({ "name": "you" });
    process::until(PATIENCE, LOOK, "a node responds with the new version", || {
        let answer = node.post(HELLO_PATH, Some(&body))?;
        let is_new = answer["text"].as_str().is_some_and(|text| text.starts_with(greeting));
        Ok(is_new.then(|| begun.elapsed().as_secs_f64() * 1e3))
    })
}
