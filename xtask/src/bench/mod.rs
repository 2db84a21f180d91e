//! `cargo xtask bench`: the cost of the sandbox.
//!
//! The same operations run in components and in a native twin of the same code with the same
//! middleware and store. They take turns, so that changes of the machine's speed affect both.
//! Results are medians of several rounds.

mod client;
mod fairness;
mod languages;
mod load;
mod operators;
mod report;
mod server;
mod size;
mod steady;
mod swaps;
mod versions;
mod writes;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use self::load::{LoadExtent, LoadRequest, LoadResults};
use self::report::{NeighbourLatency, OperationResults, Report, median, medians};
use self::server::{Server, ServerParameters};
use crate::postgres::TemporaryPostgres;
use crate::workspace::{GuestKind, Workspace, cargo};
use crate::{guests, process};

#[derive(Args)]
pub(crate) struct Options {
    /// Rounds of each operation on each server
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Duration of one round, in seconds
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Connections of the load
    #[arg(long, default_value_t = 32)]
    connections: u32,
    /// Measure a large workspace instead: many findings, large SBOMs, a long dependency list
    #[arg(long)]
    size: bool,
    /// Measure swaps, rollbacks, trials and deployments under a steady load instead, on one node
    /// and on a fleet of three
    #[arg(long, conflicts_with = "size")]
    swaps: bool,
    /// Measure the area `announcements` in Rust, JavaScript and Python instead; languages without
    /// npm or Python are skipped
    #[arg(long, conflicts_with_all = ["size", "swaps"])]
    languages: bool,
    /// Measure writes and what they set in motion instead (POSTs, webhook deliveries, empty jobs),
    /// next to the bare databases and graphile_worker
    #[arg(long, conflicts_with_all = ["size", "swaps", "languages"])]
    writes: bool,
    /// Folder of another build with `assurance` and `areas`, measured in turns with this one, with
    /// --writes
    #[arg(long, requires = "writes")]
    before: Option<PathBuf>,
    /// Measure how long a quiet workspace waits for its jobs, alone and beside a busy one, instead
    #[arg(long, conflicts_with_all = ["size", "swaps", "languages", "writes"])]
    fairness: bool,
    /// Requests per second, with --swaps
    #[arg(long, default_value_t = 2_000)]
    rate: u32,
    /// Maximum number of findings in the control room, with --size
    #[arg(long, default_value_t = 100_000)]
    findings: usize,
    /// Rows of the dependency list, with --size
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
}

const CREATE: LoadRequest = LoadRequest {
    name: "POST support case",
    method: "POST",
    path: "/support/cases",
    body: Some(
        r#"{"subject":"Login fails","description":"The sign-in page answers with an error since this morning."}"#,
    ),
    unique_key: true,
};
const LIST: LoadRequest = LoadRequest::get("GET support cases", "/support/cases");
const DESCRIBE: LoadRequest =
    LoadRequest::get("GET envelope schema (no storage)", "/evidence-envelopes/schema");
const LOOP: LoadRequest = LoadRequest {
    name: "an endless loop",
    method: "POST",
    path: "/fixtures/infinite-loop",
    body: Some("{}"),
    unique_key: false,
};

/// Paths of the programs and areas that are built before the measurement, and its folder.
struct BuiltPrograms {
    host: PathBuf,
    twin: PathBuf,
    areas: PathBuf,
    folder: PathBuf,
}

impl BuiltPrograms {
    /// Creates a folder with copies of these files of the built areas. Returns the folder.
    fn areas_with(&self, name: &str, files: &[&str]) -> anyhow::Result<PathBuf> {
        let areas = self.folder.join(name);
        std::fs::create_dir_all(&areas)?;
        for file in files {
            let from = self.areas.join(file);
            std::fs::copy(&from, areas.join(from.file_name().unwrap_or_default()))
                .with_context(|| format!("cannot copy {}", from.display()))?;
        }
        Ok(areas)
    }
}

/// Builds everything, runs the benchmark that the options select, prints the results and writes
/// them to a file.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<()> {
    if options.size {
        return size::run(workspace, &prepare(workspace)?, options);
    }
    if options.swaps {
        return swaps::run(workspace, &prepare(workspace)?, options);
    }
    if options.fairness {
        return fairness::run(workspace, &prepare(workspace)?);
    }
    load::require_wrk()?;
    if options.writes {
        return writes::run(workspace, &prepare(workspace)?, options);
    }
    if options.languages {
        return languages::run(workspace, &prepare(workspace)?, options);
    }
    let programs = prepare(workspace)?;
    let postgres = TemporaryPostgres::start()?;
    let mut rows = Vec::new();
    let mut start_ms = Vec::new();
    for backend in ["sqlite", "postgres"] {
        let pair = ServerPair::start(&programs, backend, &postgres)?;
        rows.extend(pair.measure(options, backend)?);
        drop(pair);
        start_ms.push(warm_start(&programs, backend, &postgres)?);
    }
    let report = Report {
        machine: machine()?,
        rounds: options.rounds,
        connections: options.connections,
        seconds: options.seconds,
        start_ms,
        rows,
        neighbour: neighbour(&programs, options)?,
        in_process: in_process(workspace)?,
    };
    report.print();
    report::write(&workspace.target.join("bench.json"), &report)
}

fn prepare(workspace: &Workspace) -> anyhow::Result<BuiltPrograms> {
    let options = guests::Options { fixtures: true, release: true, ..guests::Options::default() };
    guests::build(workspace, options)?;
    let mut build = cargo();
    build.current_dir(&workspace.root).args(["build", "--workspace", "--release", "--bins"]);
    process::run(&mut build)?;
    let folder = workspace.target.join("bench");
    // Files of an earlier run would make the tables larger.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    Ok(BuiltPrograms {
        host: workspace.target.join("release/assurance"),
        twin: workspace.target.join("release/native-twin"),
        areas: workspace.components(GuestKind::Area),
        folder,
    })
}

/// Servers of the component and of the twin, each with its own data on the same kind of database.
struct ServerPair {
    component: Server,
    twin: Server,
}

impl ServerPair {
    fn start(
        programs: &BuiltPrograms,
        backend: &str,
        postgres: &TemporaryPostgres,
    ) -> anyhow::Result<Self> {
        let component = Server::start(&plan(programs, "component", backend, postgres)?)?;
        let twin = Server::start(&plan(programs, "twin", backend, postgres)?)?;
        Ok(Self { component, twin })
    }

    /// Measures each operation. The list is measured first, with the few cases of a short warm-up,
    /// because a list of thousands would measure JSON.
    fn measure(
        &self,
        options: &Options,
        backend: &'static str,
    ) -> anyhow::Result<Vec<OperationResults>> {
        for server in [&self.component, &self.twin] {
            server.create_cases(10)?;
        }
        let operations = [LIST, DESCRIBE, CREATE];
        operations.iter().map(|operation| self.compare(options, operation, backend)).collect()
    }

    fn compare(
        &self,
        options: &Options,
        operation: &LoadRequest,
        backend: &'static str,
    ) -> anyhow::Result<OperationResults> {
        let load = LoadExtent { connections: options.connections, seconds: options.seconds };
        let run = |server, load| load::run(server, operation, load);
        let warm = LoadExtent { seconds: 1, ..load };
        run(&self.component, warm)?;
        run(&self.twin, warm)?;
        let (mut component, mut twin) = (Vec::<LoadResults>::new(), Vec::<LoadResults>::new());
        for round in 0..options.rounds {
            eprintln!("{backend}, {}: round {} of {}", operation.name, round + 1, options.rounds);
            component.push(run(&self.component, load)?);
            twin.push(run(&self.twin, load)?);
        }
        let ratios = component.iter().zip(&twin);
        let ratio =
            median(ratios.map(|(c, t)| c.requests_per_second / t.requests_per_second).collect());
        let (component, twin) = (medians(&component), medians(&twin));
        let extra_cpu_us = component.cpu_us_per_request - twin.cpu_us_per_request;
        Ok(OperationResults {
            operation: operation.name,
            backend,
            component,
            twin,
            ratio,
            extra_cpu_us,
        })
    }
}

fn plan<'a>(
    programs: &'a BuiltPrograms,
    kind: &str,
    backend: &str,
    postgres: &TemporaryPostgres,
) -> anyhow::Result<ServerParameters<'a>> {
    let name = format!("{kind}_{backend}");
    let mut plan = alone(programs, &name, &programs.areas);
    plan.database = match backend {
        "postgres" if !plan.folder.exists() => Some(postgres.create_database(&name)?),
        "postgres" => Some(postgres.database_url(&name)),
        _ => None,
    };
    if kind == "twin" {
        plan.program = &programs.twin;
        plan.arguments = &[];
    }
    Ok(plan)
}

/// Returns the plan of a single host with the embedded database and the areas of one folder.
fn alone<'a>(programs: &'a BuiltPrograms, name: &str, areas: &'a Path) -> ServerParameters<'a> {
    ServerParameters {
        program: &programs.host,
        arguments: &["serve"],
        host: &programs.host,
        folder: programs.folder.join(name),
        areas,
        database: None,
        settings: String::new(),
        fleet: None,
    }
}

/// Returns the median time in milliseconds of a server's start with cached machine code.
fn warm_start(
    programs: &BuiltPrograms,
    backend: &str,
    postgres: &TemporaryPostgres,
) -> anyhow::Result<f64> {
    let plan = plan(programs, "component", backend, postgres)?;
    let times_ms = (0..5).map(|_| Ok(Server::start(&plan)?.start_ms));
    Ok(median(times_ms.collect::<anyhow::Result<_>>()?))
}

/// Measures the latency of a healthy area, alone and while clients of another area call an endless
/// loop.
fn neighbour(programs: &BuiltPrograms, options: &Options) -> anyhow::Result<NeighbourLatency> {
    let areas = programs.areas_with("areas", &["support.wasm", "fixtures/infinite-loop.wasm"])?;
    let server = Server::start(&alone(programs, "neighbour", &areas))?;
    server.create_cases(10)?;
    // Far below the machine's maximum, so that latency and not throughput is measured.
    let quick = LoadExtent { connections: 2, seconds: options.seconds };
    let quiet = load::run(&server, &LIST, quick)?;
    let looping = LoadExtent { connections: 16, seconds: options.seconds + 2 };
    let beside_a_loop = std::thread::scope(|scope| {
        let noise = scope.spawn(|| load::run(&server, &LOOP, looping));
        std::thread::sleep(std::time::Duration::from_secs(1));
        let measured = load::run(&server, &LIST, quick);
        // Its figures do not matter.
        let _ = noise.join();
        measured
    })?;
    Ok(NeighbourLatency { quiet, beside_a_loop })
}

/// Measures the cost of one instantiation, one call and one host call without HTTP. Returns the
/// lines that the measurement printed.
fn in_process(workspace: &Workspace) -> anyhow::Result<String> {
    let mut bench = cargo();
    bench.current_dir(&workspace.root).args(["bench", "--quiet", "--workspace"]);
    bench.args(["--bench", "runtime"]);
    bench.env("ASSURANCE_FIXTURES", workspace.components(GuestKind::Fixture));
    process::run_quietly(&mut bench)
}

fn machine() -> anyhow::Result<String> {
    let cpus = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let count = std::thread::available_parallelism()?;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let model = model.trim_start_matches(['\t', ' ', ':']);
    Ok(format!("{count} cores, {model}, Linux {}", kernel.trim()))
}
