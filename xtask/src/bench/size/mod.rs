//! `cargo xtask bench --size`: the cost of a large workspace.
//!
//! All data is imported through uploads and audits like a client's, so that the areas' own data is
//! measured.

pub(super) mod data;
mod lists;
mod report;

use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::{Value as Json, json};

use self::lists::DependencyListTimes;
use self::report::{ControlRoomRebuildTimes, Report, SbomImportTimes, repeated};
use super::operators::OperatorsClient;
use super::server::Server;
use super::{BuiltPrograms, Options, machine, plan};
use crate::postgres::TemporaryPostgres;
use crate::workspace::Workspace;

/// Number of components in one generated SBOM.
const COMPONENTS: usize = 10_000;
/// Number of findings in one generated SARIF file.
const RESULTS: usize = 10_000;
/// Numbers of findings after which the control room is rebuilt.
const FINDINGS: [usize; 3] = [1_000, 10_000, 100_000];

/// Imports much data, measures, prints the results and writes them to a file.
pub(crate) fn run(
    workspace: &Workspace,
    programs: &BuiltPrograms,
    options: &Options,
) -> anyhow::Result<()> {
    let postgres = TemporaryPostgres::start()?;
    let mut report = Report { machine: machine()?, ..Report::default() };
    for backend in ["sqlite", "postgres"] {
        let server = Server::start(&plan(programs, "size", backend, &postgres)?)?;
        imports(&server, backend, &mut report)?;
        rebuilds(&server, backend, options.findings, &mut report)?;
        // The target is for PostgreSQL; the embedded database is for less data.
        if backend == "postgres" {
            report.lists = dependencies(&server, options.rows)?;
        }
        report.host_memory_bytes.insert(backend, server.peak_memory_bytes()?);
    }
    report.print();
    super::report::write(&workspace.target.join("bench-size.json"), &report)
}

/// Measures imports of one SBOM each, from the start of the audit to the audit's end.
fn imports(server: &Server, backend: &'static str, report: &mut Report) -> anyhow::Result<()> {
    let mut seconds = Vec::new();
    for number in 0..3 {
        let repository = repository(server, &format!("import-{number}"))?;
        upload(server, &repository, "bom.cdx.json", &data::sbom(number, COMPONENTS))?;
        let begun = Instant::now();
        let audit = audit(server, &repository)?;
        seconds.push(begun.elapsed().as_secs_f64());
        let total = audit["facts"]["dependencies"]["total"].as_u64();
        ensure!(total == Some(COMPONENTS as u64), "{total:?} components were imported");
    }
    report.imports.push(SbomImportTimes { backend, components: COMPONENTS, seconds });
    Ok(())
}

/// Measures rebuilds of the control room with more and more findings, each file in a separate
/// repository.
fn rebuilds(
    server: &Server,
    backend: &'static str,
    most: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut there = 0;
    for findings in FINDINGS.into_iter().filter(|findings| *findings <= most) {
        while there < findings {
            eprintln!("{backend}: {there} of {findings} findings");
            let to = findings.min(there + RESULTS);
            let repository = repository(server, &format!("scanned-{there}"))?;
            upload(server, &repository, "scan.sarif", &data::sarif(there, to))?;
            let audit = audit(server, &repository)?;
            let new = audit["facts"]["findings"]["new"].as_u64();
            ensure!(new == Some((to - there) as u64), "{new:?} findings were imported");
            there = to;
        }
        let times = repeated(20, || server.post("/control-room/rebuild", None))?;
        let guest_memory_bytes = guest_memory_bytes(server, "control_room")?;
        report.rebuilds.push(ControlRoomRebuildTimes {
            backend,
            findings,
            times,
            guest_memory_bytes,
        });
    }
    Ok(())
}

/// Measures the dependency list with this number of rows.
fn dependencies(server: &Server, rows: usize) -> anyhow::Result<Vec<DependencyListTimes>> {
    server.post("/advisories", Some(&data::advisory()))?;
    let bills = rows.div_ceil(COMPONENTS);
    let numbers = std::sync::atomic::AtomicUsize::new(0);
    let fill = || -> anyhow::Result<()> {
        loop {
            let number = numbers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if number >= bills {
                return Ok(());
            }
            eprintln!("bill {} of {bills}", number + 1);
            let repository = repository(server, &format!("service-{number}"))?;
            upload(server, &repository, "bom.cdx.json", &data::sbom(number, COMPONENTS))?;
            audit(server, &repository)?;
        }
    };
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let fillers = [scope.spawn(fill), scope.spawn(fill)];
        for filler in fillers {
            filler.join().map_err(|_| anyhow::anyhow!("a filler ended early"))??;
        }
        Ok(())
    })?;
    lists::measure(server)
}

/// Returns the maximum memory of one call of an area since the server started.
fn guest_memory_bytes(server: &Server, area: &str) -> anyhow::Result<u64> {
    let usage = OperatorsClient::of(server)?.get("/usage")?;
    let areas = usage["areas"].as_array().into_iter().flatten();
    let found = areas.into_iter().find(|one| one["name"] == area);
    let bytes = found.and_then(|one| one["call_memory_peak_bytes"].as_u64());
    bytes.with_context(|| format!("no memory of {area} in {usage:#}"))
}

pub(super) fn repository(server: &Server, name: &str) -> anyhow::Result<String> {
    let body = json!({ "name": name, "provider": "github", "default_branch": "main" });
    id(&server.post("/repositories", Some(&body))?)
}

pub(super) fn upload(
    server: &Server,
    repository: &str,
    filename: &str,
    content: &str,
) -> anyhow::Result<()> {
    let body = json!({
        "filename": filename, "content_type": "application/json", "purpose": "audit",
        "compressed_bytes": content.len(), "repository_id": repository,
    });
    let upload = server.post("/uploads", Some(&body))?;
    server.store(&upload, content)?;
    let path = format!("/uploads/{}", id(&upload)?);
    server.post(&format!("{path}/complete"), None)?;
    let settled = server.settled(&path, "validation_stage", &["ready", "rejected"])?;
    ensure!(settled["validation_stage"] == "ready", "{filename} was refused: {settled:#}");
    Ok(())
}

pub(super) fn audit(server: &Server, repository: &str) -> anyhow::Result<Json> {
    let audit = server.post("/audits", Some(&json!({ "repository_id": repository })))?;
    let path = format!("/audits/{}", id(&audit)?);
    let audit = server.settled(&path, "state", &["completed", "failed"])?;
    ensure!(audit["state"] == "completed", "an audit failed: {audit:#}");
    Ok(audit)
}

fn id(resource: &Json) -> anyhow::Result<String> {
    Ok(resource["id"].as_str().context("a resource without an id")?.to_owned())
}
