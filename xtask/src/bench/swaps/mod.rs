//! `cargo xtask bench --swaps`: what clients notice while operators swap, roll back and try
//! versions, and how long a deployment takes.
//!
//! Three areas are under a steady load: one is swapped and rolled back, one has a shadow, and one
//! gets faulty canaries that the host must end itself. Afterwards deployments are timed, on this
//! node and on a fleet.

mod fleet;
mod report;
mod versions;

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value as Json, json};

use self::report::{DeployToResponseTimes, OneNode, Report};
use self::versions::Versions;
use super::operators::OperatorsClient;
use super::report::Latency;
use super::server::Server;
use super::steady::{PhaseResults, RequestWithExpectedResponse, SteadyLoad};
use super::{BuiltPrograms, Options, alone, machine};
use crate::postgres::TemporaryPostgres;
use crate::process;
use crate::workspace::Workspace;

/// Number of versions between which the swaps alternate.
const VERSIONS: usize = 10;
const SWAPS: usize = 1_000;
const ROLLBACKS: usize = 100;
const CANARIES: usize = 20;
/// Number of further swaps after which the server's memory is measured again.
const MORE_SWAPS: usize = 5_000;
/// Number of timed deployments of each kind.
const DEPLOYMENTS: usize = 20;
/// Pause between two swaps under load.
const PACE: Duration = Duration::from_millis(50);
/// Number of rounds. Phases with and without swaps alternate, so that other load on the machine
/// affects both.
const ROUNDS: usize = 10;
const QUIET: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(30);

const SWAPPED: &str = "/areas/hello";
/// Path below the workspace, of the area that is swapped.
const HELLO_PATH: &str = "/hello";
const TRIED: &str = "/areas/behaves_as_marked";

/// Measures swaps under a steady load, prints the results and writes them to a file.
pub(crate) fn run(
    workspace: &Workspace,
    programs: &BuiltPrograms,
    options: &Options,
) -> anyhow::Result<()> {
    let postgres = TemporaryPostgres::start()?;
    let areas = programs.areas_with("swapped-areas", &["support.wasm"])?;
    let server = Server::start(&alone(programs, "swaps", &areas))?;
    server.create_cases(10)?;
    let one_node = SwapBench::set(&server, programs)?.measure(&server, options.rate)?;
    // Frees the processors for the fleet.
    drop(server);
    let fleet = fleet::deployments(programs, &postgres)?;
    let report = Report { machine: machine()?, rate: options.rate, one_node, fleet };
    report.print();
    super::report::write(&workspace.target.join("bench-swaps.json"), &report)
}

/// Client and versions with which the benchmark swaps, tries and deploys areas under load.
struct SwapBench {
    operators: OperatorsClient,
    versions: Versions,
    /// Digests of the versions between which the swaps alternate.
    digests: Vec<String>,
    faulty: String,
}

impl SwapBench {
    /// Deploys all versions to a server and starts the shadow.
    fn set(server: &Server, programs: &BuiltPrograms) -> anyhow::Result<Self> {
        let operators = OperatorsClient::of(server)?;
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
        let steady = SteadyLoad::new(server, rate, requests(server));
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
        let [quiet, swapping] = [quiet, swapping].map(PhaseResults::of_rounds);
        let rolling_back = phase("rolling back", &|| self.roll_back())?;
        let trying = phase("faulty canaries", &|| self.try_out())?;
        let before = server.memory_bytes()?;
        let hurrying =
            phase("swapping without a pause", &|| self.swap(MORE_SWAPS, Duration::ZERO))?;
        let memory_bytes = [before, server.memory_bytes()?];
        let phases: Vec<(&'static str, PhaseResults)> = vec![
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

    /// Rolls back and activates again; the last version is live before and after.
    fn roll_back(&self) -> anyhow::Result<()> {
        for digest in self.digests[..VERSIONS - 1].iter().cycle().take(ROLLBACKS) {
            self.operators.post(SWAPPED, "activate", &json!({ "digest": digest }))?;
            std::thread::sleep(PACE);
            self.operators.post(SWAPPED, "rollback", &json!({ "reason": "measured" }))?;
            std::thread::sleep(PACE);
        }
        Ok(())
    }

    /// Starts canaries for all workspaces, which serve until the host ends them.
    fn try_out(&self) -> anyhow::Result<()> {
        for _ in 0..CANARIES {
            let wish = json!({ "digest": self.faulty, "share": 100 });
            self.operators.post(TRIED, "canary", &wish)?;
            self.until_rolled_back()?;
        }
        Ok(())
    }

    fn until_rolled_back(&self) -> anyhow::Result<()> {
        let pause = Duration::from_millis(5);
        process::until(PATIENCE, pause, "a faulty canary is rolled back", || {
            let area = self.operators.get(TRIED)?;
            Ok((area["trial"]["state"] == "rolled_back").then_some(()))
        })
    }

    /// Measures the time from the start of the deployment's request to the version's first
    /// response.
    fn deployments(&self, server: &Server) -> anyhow::Result<DeployToResponseTimes> {
        let deploy = |number: usize| -> anyhow::Result<f64> {
            let component = self.versions.hello(number);
            let begun = Instant::now();
            let told = self.operators.put(SWAPPED, "activate=true", component)?;
            ensure!(told["result"] == "live", "the version is not live: {told}");
            server.post(HELLO_PATH, Some(&json!({ "name": "you" })))?;
            Ok(begun.elapsed().as_secs_f64() * 1e3)
        };
        let fresh = (0..DEPLOYMENTS).map(|number| deploy(1_000 + number));
        let fresh = Latency::of(fresh.collect::<anyhow::Result<_>>()?);
        let cached = (0..DEPLOYMENTS).map(|number| deploy(number % VERSIONS));
        let cached = Latency::of(cached.collect::<anyhow::Result<_>>()?);
        Ok(DeployToResponseTimes { component_bytes: self.versions.hello(0).len(), fresh, cached })
    }
}

/// Returns the steady load: one request of each of the three areas.
fn requests(server: &Server) -> Vec<RequestWithExpectedResponse> {
    let list = ("GET", "/support/cases", "");
    let greet = ("POST", HELLO_PATH, r#"{"name":"you"}"#);
    let tell = ("POST", "/fixtures/behaves-as-marked", r#"{"do":"tell"}"#);
    vec![
        RequestWithExpectedResponse::new(server, list, ("200", "Login fails")),
        RequestWithExpectedResponse::new(server, greet, ("201", "Hello, you!")),
        RequestWithExpectedResponse::new(server, tell, ("200", "soundly.")).on_trial(),
    ]
}
