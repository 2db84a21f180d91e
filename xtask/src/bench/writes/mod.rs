//! `cargo xtask bench --writes`: writes, and what they set in motion, next to another build, the
//! bare databases and another queue. All take turns; results are medians of rounds.

mod peers;
mod receiver;
mod rows;
mod service;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

pub(super) use self::receiver::WebhookReceiver;
pub(super) use self::service::{due, subscribe, until_drained};

use self::peers::PeersProgram;
use self::rows::{MeasuredSubject, MeasurementTable, SubjectRoundResults};
use self::service::MeasuredService;
use super::load::LoadExtent;
use super::{BuiltPrograms, Options, machine, report};
use crate::postgres::TemporaryPostgres;
use crate::workspace::Workspace;

/// Number of jobs that another job queue (a peer) drains.
const JOBS: &str = "50000";
/// Number of jobs that a peer drains if it has a transaction for each job.
const SINGLE_JOBS: &str = "5000";
/// Numbers of connections of the additional loads of one workspace.
const CLIENTS: [u32; 4] = [1, 8, 64, 512];
/// Numbers of workspaces among which an additional load is spread.
const WORKSPACES: [usize; 2] = [100, 1_000];

/// Measures writes, prints the results and writes them to a file.
pub(crate) fn run(
    workspace: &Workspace,
    programs: &BuiltPrograms,
    options: &Options,
) -> anyhow::Result<()> {
    let peers = PeersProgram::build(workspace)?;
    let postgres = TemporaryPostgres::start()?;
    let before = options.before.as_deref().map(|folder| build_in(programs, folder)).transpose()?;
    let builds = [before.as_ref().map(|one| ("before", one)), Some(("now", programs))];
    let mut bench = Bench {
        builds: builds.into_iter().flatten().collect(),
        options,
        postgres: &postgres,
        peers,
        folder: &programs.folder,
        rows: MeasurementTable::default(),
    };
    // What was measured before a failure is reported too.
    let measured =
        ["sqlite", "postgres"].into_iter().try_for_each(|backend| bench.measure(backend));
    println!("\nmachine: {}\n", machine()?);
    bench.rows.print();
    report::write(&workspace.target.join("bench-writes.json"), &bench.rows)?;
    measured
}

/// Returns the programs of another build of the service, in this folder.
fn build_in(programs: &BuiltPrograms, folder: &Path) -> anyhow::Result<BuiltPrograms> {
    let folder = folder.canonicalize().with_context(|| format!("no {}", folder.display()))?;
    let (host, areas) = (folder.join("assurance"), folder.join("areas"));
    ensure!(host.exists() && areas.exists(), "no assurance and areas in {}", folder.display());
    Ok(BuiltPrograms { host, areas, twin: programs.twin.clone(), folder: programs.folder.clone() })
}

struct Bench<'a> {
    /// Builds of the service to measure, each with its name in the report.
    builds: Vec<(&'static str, &'a BuiltPrograms)>,
    options: &'a Options,
    postgres: &'a TemporaryPostgres,
    peers: PeersProgram,
    folder: &'a PathBuf,
    rows: MeasurementTable,
}

impl<'a> Bench<'a> {
    fn measure(&mut self, backend: &'static str) -> anyhow::Result<()> {
        for round in 0..self.options.rounds {
            eprintln!("{backend}: round {} of {}", round + 1, self.options.rounds);
            for build in 0..self.builds.len() {
                self.service(build, backend, round)?;
            }
            self.bare_posts(backend, round)?;
            self.queues(backend, round)?;
        }
        self.loads(backend)
    }

    fn one(
        &self,
        build: usize,
        backend: &'static str,
        round: usize,
        connections: u32,
    ) -> MeasuredService<'a> {
        let (whose, programs) = self.builds[build];
        MeasuredService {
            programs,
            postgres: self.postgres,
            backend,
            name: format!("{whose}-{connections}-{round}"),
            load: LoadExtent { connections, seconds: self.options.seconds },
        }
    }

    fn add(
        &mut self,
        what: impl Into<String>,
        backend: &'static str,
        whose: &'static str,
        figures: SubjectRoundResults,
    ) {
        self.rows.add(MeasuredSubject { what: what.into(), backend, whose }, figures);
    }

    /// Measures one build on one database for one round.
    fn service(&mut self, build: usize, backend: &'static str, round: usize) -> anyhow::Result<()> {
        let whose = self.builds[build].0;
        let service = self.one(build, backend, round, self.options.connections);
        self.add("POST support case", backend, whose, service.posts(1)?);
        self.add("webhook deliveries", backend, whose, service.deliveries()?);
        self.add("empty jobs", backend, whose, service.empty_jobs("enqueues-jobs")?);
        self.add("empty jobs, together", backend, whose, service.empty_jobs("runs-together")?);
        Ok(())
    }

    /// Writes the rows of the POSTs directly, without the service, to the database of the last
    /// build, and measures the rate.
    fn bare_posts(&mut self, backend: &'static str, round: usize) -> anyhow::Result<()> {
        let last = self.builds.len() - 1;
        let database = self.one(last, backend, round, self.options.connections).posts_database()?;
        let seconds = self.options.seconds.to_string();
        let posts = |per_commit| self.peers.run(&["posts", &database, &seconds, per_commit], 0);
        let single = posts("1")?;
        if backend == "sqlite" {
            let together = posts("16")?;
            self.add("rows of POSTs, 16 in a commit", backend, "bare", together);
        }
        self.add("rows of POSTs, each committed", backend, "bare", single);
        Ok(())
    }

    /// Measures how fast the peers drain empty jobs.
    fn queues(&mut self, backend: &'static str, round: usize) -> anyhow::Result<()> {
        let bare = ("jobs-fill", "jobs", JOBS, "rows of jobs, 64 in a commit", "bare");
        let (fill, whose) = ("graphile-fill", "graphile_worker");
        let together = (fill, "graphile", JOBS, "empty jobs, together", whose);
        let single = (fill, "graphile-single", SINGLE_JOBS, "empty jobs", whose);
        let kinds = if backend == "sqlite" { vec![bare] } else { vec![bare, together, single] };
        for (fill, run, jobs, what, whose) in kinds {
            let name = format!("{run}-{round}");
            let database = match backend {
                "sqlite" => peers::file(self.folder, &name),
                _ => self.postgres.create_database(&name)?,
            };
            self.peers.prepare(&[fill, &database, jobs])?;
            let figures = self.peers.run(&[run, &database, jobs], jobs.parse()?)?;
            self.add(what, backend, whose, figures);
        }
        Ok(())
    }

    /// Measures the additional loads of the current build, once each.
    fn loads(&mut self, backend: &'static str) -> anyhow::Result<()> {
        let (now, once) = (self.builds.len() - 1, self.options.rounds);
        for clients in CLIENTS {
            eprintln!("{backend}: {clients} clients");
            let figures = self.one(now, backend, once, clients).posts(1)?;
            self.add(format!("POST support case, {clients} clients"), backend, "now", figures);
        }
        for workspaces in WORKSPACES {
            eprintln!("{backend}: {workspaces} workspaces");
            let service = self.one(now, backend, once + workspaces, self.options.connections);
            let what = format!("POST support case, {workspaces} workspaces");
            self.add(what, backend, "now", service.posts(workspaces)?);
        }
        // A round of its own: in the data of another load, its keys would be known already.
        let service = self.one(now, backend, once + 1, self.options.connections);
        let most = service.posts(1)?.per_second;
        let half = (most / 2.0) as u32;
        let figures = service.posts_at(half.max(1))?;
        self.add("POST support case, half of that rate", backend, "now", figures);
        Ok(())
    }
}

/// Returns the processor time of all PostgreSQL processes so far, in microseconds, with that of
/// ended ones, which their parent knows.
fn postgres_cpu_us() -> anyhow::Result<f64> {
    let mut ticks = 0;
    for process in std::fs::read_dir("/proc")? {
        // A process may end meanwhile; most entries are no processes.
        let Ok(stat) = std::fs::read_to_string(process?.path().join("stat")) else { continue };
        if let Some((name, fields)) = stat.rsplit_once(") ")
            && name.ends_with("(postgres")
        {
            let times = fields.split(' ').skip(11).take(4);
            ticks += times.filter_map(|time| time.parse::<u32>().ok()).sum::<u32>();
        }
    }
    Ok(f64::from(ticks) * 10_000.0)
}
