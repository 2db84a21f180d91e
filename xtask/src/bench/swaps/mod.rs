//! `cargo xtask bench --swaps`: what a client notices while operators swap, roll
//! back and try versions, and how long a deployment takes.
//!
//! Three areas are under one steady load: one that is swapped and rolled back,
//! one whose answers a shadow repeats throughout, one on which faulty canaries
//! are begun that the host has to end by itself. Deployments are timed
//! afterwards, to this node and then to a fleet.

mod fleet;
mod report;
mod steady;
mod versions;

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value as Json, json};

use self::report::{Deployments, OneNode, Report};
use self::steady::{Figures, Steady};
use self::versions::Versions;
use super::operators::Operators;
use super::report::Times;
use super::server::Server;
use super::{CREATE, Options, Programs, alone, machine};
use crate::postgres::Postgres;
use crate::workspace::Workspace;

/// Versions that take turns.
const VERSIONS: usize = 10;
const SWAPS: usize = 1_000;
const ROLLBACKS: usize = 100;
const CANARIES: usize = 20;
/// Swaps after which the memory is looked at once more.
const MORE_SWAPS: usize = 5_000;
/// Deployments that are timed, of each kind.
const DEPLOYMENTS: usize = 20;
/// Between two swaps under load.
const PACE: Duration = Duration::from_millis(50);
/// Quiet times and swaps take turns, so that a machine that others slow down
/// slows both.
const ROUNDS: usize = 10;
const QUIET: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(30);

const SWAPPED: &str = "/areas/hello";
const TRIED: &str = "/areas/behaves_as_marked";

/// Measures, prints, keeps.
pub(crate) fn run(
    workspace: &Workspace,
    programs: &Programs,
    options: &Options,
) -> anyhow::Result<()> {
    let postgres = Postgres::start()?;
    let areas = programs.folder.join("swapped-areas");
    std::fs::create_dir_all(&areas)?;
    std::fs::copy(programs.areas.join("support.wasm"), areas.join("support.wasm"))?;
    let server = Server::start(&alone(programs, "swaps", &areas))?;
    server.create(CREATE.path, CREATE.body.unwrap_or_default(), 10)?;
    let one_node = Stage::set(&server, programs)?.measure(&server, options.rate)?;
    // The processors are the fleet's alone.
    drop(server);
    let fleet = fleet::deployments(programs, &postgres)?;
    let report = Report { machine: machine()?, rate: options.rate, one_node, fleet };
    report.print();
    report.write(&workspace.target.join("bench-swaps.json"))
}

/// The operators' side of it.
struct Stage {
    operators: Operators,
    versions: Versions,
    /// Digests of the versions that take turns.
    digests: Vec<String>,
    faulty: String,
}

impl Stage {
    /// Everything is deployed, the shadow has begun.
    fn set(server: &Server, programs: &Programs) -> anyhow::Result<Self> {
        let operators = Operators::of(server)?;
        let versions = Versions::read(&programs.areas)?;
        let digest = |answer: Json| -> anyhow::Result<String> {
            Ok(answer["digest"].as_str().context("no digest")?.to_owned())
        };
        let deploy = |number| operators.put(SWAPPED, "activate=true", versions.hello(number));
        let digests = (0..VERSIONS).map(|number| digest(deploy(number)?));
        let digests = digests.collect::<anyhow::Result<_>>()?;
        operators.put(TRIED, "activate=true", versions.marked("soundly.")?)?;
        let faulty = versions.marked("trapping")?;
        let faulty = digest(operators.put(TRIED, "activate=false", faulty)?)?;
        operators.put("/areas/support", "shadow=10", versions.support())?;
        Ok(Self { operators, versions, digests, faulty })
    }

    fn measure(&self, server: &Server, rate: u32) -> anyhow::Result<OneNode> {
        let steady = Steady::new(server, rate);
        let phase = |name: &str, work: &dyn Fn() -> anyhow::Result<()>| {
            eprintln!("{rate} requests a second, {name}");
            steady.during(work)
        };
        let (mut quiet, mut swapping) = (Vec::new(), Vec::new());
        for round in 1..=ROUNDS {
            quiet.push(phase(&format!("nothing else, {round} of {ROUNDS}"), &|| {
                std::thread::sleep(QUIET);
                Ok(())
            })?);
            swapping.push(phase("swapping", &|| self.swap(SWAPS / ROUNDS, PACE))?);
        }
        let [quiet, swapping] = [quiet, swapping].map(Figures::of_rounds);
        let rolling_back = phase("rolling back", &|| self.roll_back())?;
        let trying = phase("faulty canaries", &|| self.try_out())?;
        let before = server.memory_bytes()?;
        let hurrying =
            phase("swapping without a pause", &|| self.swap(MORE_SWAPS, Duration::ZERO))?;
        let memory_bytes = [before, server.memory_bytes()?];
        let phases: Vec<(&'static str, Figures)> = vec![
            ("nothing else", quiet),
            ("1,000 swaps of ten versions", swapping),
            ("100 rollbacks", rolling_back),
            ("20 faulty canaries", trying),
            ("5,000 swaps without a pause", hurrying),
        ];
        Ok(OneNode { phases, memory_bytes, deployments: self.deployments(server)? })
    }

    fn swap(&self, times: usize, pace: Duration) -> anyhow::Result<()> {
        for digest in self.digests.iter().cycle().take(times) {
            self.operators.post(SWAPPED, "activate", &json!({ "digest": digest }))?;
            std::thread::sleep(pace);
        }
        Ok(())
    }

    /// The last version is the one that is live, and comes back each time.
    fn roll_back(&self) -> anyhow::Result<()> {
        for digest in self.digests[..VERSIONS - 1].iter().cycle().take(ROLLBACKS) {
            self.operators.post(SWAPPED, "activate", &json!({ "digest": digest }))?;
            std::thread::sleep(PACE);
            self.operators.post(SWAPPED, "rollback", &json!({ "reason": "measured" }))?;
            std::thread::sleep(PACE);
        }
        Ok(())
    }

    /// Each canary is for all workspaces, and answers until it is found out.
    fn try_out(&self) -> anyhow::Result<()> {
        for _ in 0..CANARIES {
            let wish = json!({ "digest": self.faulty, "share": 100 });
            self.operators.post(TRIED, "canary", &wish)?;
            self.until_rolled_back()?;
        }
        Ok(())
    }

    fn until_rolled_back(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let area = self.operators.get(TRIED)?;
            if area["trial"]["state"] == "rolled_back" {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("a faulty canary was not rolled back within {PATIENCE:?}")
    }

    /// From the beginning of the request that deploys to the first answer of
    /// the version.
    fn deployments(&self, server: &Server) -> anyhow::Result<Deployments> {
        let deploy = |number: usize| -> anyhow::Result<f64> {
            let component = self.versions.hello(number);
            let begun = Instant::now();
            let told = self.operators.put(SWAPPED, "activate=true", component)?;
            ensure!(told["result"] == "live", "the version is not live: {told}");
            server.post(steady::HELLO_PATH, Some(&json!({ "name": "you" })))?;
            Ok(begun.elapsed().as_secs_f64() * 1e3)
        };
        let fresh = (0..DEPLOYMENTS).map(|number| deploy(1_000 + number));
        let fresh = Times::of(fresh.collect::<anyhow::Result<_>>()?);
        let cached = (0..DEPLOYMENTS).map(|number| deploy(number % VERSIONS));
        let cached = Times::of(cached.collect::<anyhow::Result<_>>()?);
        Ok(Deployments { component_bytes: self.versions.hello(0).len(), fresh, cached })
    }
}
