//! `cargo xtask bench --languages`: the cost of areas that are not written in Rust.
//!
//! The area `guests/announcements` in each language runs on one server. The languages take turns,
//! so that changes of the machine's speed affect all.

mod report;

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::json;
use xtask::languages::NonRustLanguage;

use self::report::{LanguageResults, Report};
use super::load::{self, LoadExtent, LoadRequest, LoadResults};
use super::operators::OperatorsClient;
use super::report::{Latency, medians};
use super::server::Server;
use super::versions::numbered;
use super::{BuiltPrograms, Options, alone, machine};
use crate::workspace::Workspace;

const AREA: &str = "/areas/announcements";
const ANNOUNCEMENT: &str = "/announcement";
/// Number of timed deployments of the area in each language.
const VERSIONS: usize = 3;

const READ: LoadRequest = LoadRequest::get("GET announcement", ANNOUNCEMENT);
const PUBLISH: LoadRequest = LoadRequest {
    name: "PUT announcement",
    method: "PUT",
    path: ANNOUNCEMENT,
    body: Some(r#"{"text":"The office is closed on Friday."}"#),
    unique_key: false,
};
/// Number of connections that write. All of them write the same document, so more connections would
/// measure how they wait for each other.
const WRITERS: u32 = 1;

/// The benchmark's area in one language, with its built component.
struct LanguageArea {
    language: String,
    component: Vec<u8>,
}

/// Builds and measures the area in each language, prints the results and writes them to a file.
pub(crate) fn run(
    workspace: &Workspace,
    programs: &BuiltPrograms,
    options: &Options,
) -> anyhow::Result<()> {
    let (candidates, not_measured) = candidates(workspace, programs)?;
    let areas = programs.areas_with("no-areas", &[])?;
    let server = Server::start(&alone(programs, "languages", &areas))?;
    let stage = LanguageBench { operators: OperatorsClient::of(&server)?, server, candidates };
    stage.deploy(&stage.candidates[0].component)?;
    stage.server.put(ANNOUNCEMENT, &json!({ "text": "The first one." }))?;
    let fresh = stage.deployments("compiled fresh")?;
    let cached = stage.deployments("cached")?;
    let measured = stage.loads(options)?;
    let figures = fresh.into_iter().zip(cached).zip(measured);
    let rows = stage.candidates.iter().zip(figures);
    let rows = rows.map(|(candidate, ((fresh, cached), [read, write]))| LanguageResults {
        language: candidate.language.clone(),
        component_bytes: candidate.component.len(),
        fresh,
        cached,
        read,
        write,
    });
    let report = Report {
        machine: machine()?,
        rounds: options.rounds,
        seconds: options.seconds,
        readers: options.connections,
        writers: WRITERS,
        rows: rows.collect(),
        not_measured,
    };
    report.print();
    super::report::write(&workspace.target.join("bench-languages.json"), &report)
}

/// Returns the benchmark's area in Rust and in every language whose tools are available, and for
/// other languages the reason why the tools are missing.
fn candidates(
    workspace: &Workspace,
    programs: &BuiltPrograms,
) -> anyhow::Result<(Vec<LanguageArea>, BTreeMap<String, String>)> {
    let rust = programs.areas.join("fixtures/announcements.wasm");
    let rust = fs::read(&rust).with_context(|| format!("cannot read {}", rust.display()))?;
    let mut candidates = vec![LanguageArea { language: "Rust".to_owned(), component: rust }];
    let mut not_measured = BTreeMap::new();
    for language in NonRustLanguage::ALL {
        eprintln!("a component in {language}");
        match language.tool(&workspace.target) {
            Ok(tool) => {
                let folder = programs.folder.join(language.to_string());
                let component = tool.component(&workspace.root, &folder, |source| source)?;
                candidates.push(LanguageArea { language: language.to_string(), component });
            }
            Err(why) => drop(not_measured.insert(language.to_string(), format!("{why:#}"))),
        }
    }
    Ok((candidates, not_measured))
}

struct LanguageBench {
    server: Server,
    operators: OperatorsClient,
    /// The area in each available language; at least the one in Rust.
    candidates: Vec<LanguageArea>,
}

impl LanguageBench {
    /// Deploys a component even if it breaks clients: the languages' manifests differ slightly in
    /// idempotency, and no client retries here.
    fn deploy(&self, component: &[u8]) -> anyhow::Result<()> {
        let wish = "activate=true&force=measured";
        let told = self.operators.put(AREA, wish, component.to_vec())?;
        ensure!(told["result"] == "live", "the version is not live: {told}");
        Ok(())
    }

    /// Measures the time from the start of the deployment's request to the version's first
    /// response. In the second run all versions are cached on disk and none is in memory.
    fn deployments(&self, how: &str) -> anyhow::Result<Vec<Latency>> {
        let times = |candidate: &LanguageArea| -> anyhow::Result<Latency> {
            eprintln!("{}: deployed, {how}", candidate.language);
            let deployed = (0..VERSIONS).map(|number| {
                let component = numbered(&candidate.component, number);
                let begun = Instant::now();
                self.deploy(&component)?;
                self.server.get(ANNOUNCEMENT)?;
                Ok(begun.elapsed().as_secs_f64() * 1e3)
            });
            Ok(Latency::of(deployed.collect::<anyhow::Result<_>>()?))
        };
        self.candidates.iter().map(times).collect()
    }

    /// Measures each language in turn. Returns the medians of reading and of publishing.
    fn loads(&self, options: &Options) -> anyhow::Result<Vec<[LoadResults; 2]>> {
        let mut rounds: Vec<[Vec<LoadResults>; 2]> =
            self.candidates.iter().map(|_| Default::default()).collect();
        let reads = LoadExtent { connections: options.connections, seconds: options.seconds };
        let writes = LoadExtent { connections: WRITERS, ..reads };
        let warm_up = LoadExtent { seconds: 1, ..reads };
        for round in 0..options.rounds {
            for (candidate, [read, written]) in self.candidates.iter().zip(&mut rounds) {
                let language = &candidate.language;
                eprintln!("{language}: round {} of {}", round + 1, options.rounds);
                self.deploy(&candidate.component)?;
                let run = |operation, load| load::run(&self.server, operation, load);
                run(&READ, warm_up)?;
                read.push(run(&READ, reads)?);
                written.push(run(&PUBLISH, writes)?);
            }
        }
        Ok(rounds.iter().map(|both| both.each_ref().map(|rounds| medians(rounds))).collect())
    }
}
