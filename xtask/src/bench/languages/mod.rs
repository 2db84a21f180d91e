//! `cargo xtask bench --languages`: what it costs that an area is not written
//! in Rust.
//!
//! One area, `guests/announcements`, in each language behind one server. They
//! take turns in it, so that a drift of the machine's speed meets all.

mod report;

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::json;
use xtask::languages::Language;

use self::report::{Report, Row};
use super::load::{self, Load, Measured, Operation};
use super::operators::Operators;
use super::report::{Times, medians};
use super::server::Server;
use super::versions::numbered;
use super::{Options, Programs, alone, machine};
use crate::workspace::Workspace;

const AREA: &str = "/areas/announcements";
const ANNOUNCEMENT: &str = "/announcement";
/// Deployments that are timed, of each language.
const VERSIONS: usize = 3;

const READ: Operation = Operation {
    name: "GET announcement",
    method: "GET",
    path: ANNOUNCEMENT,
    body: None,
    unique_key: false,
};
const PUBLISH: Operation = Operation {
    name: "PUT announcement",
    method: "PUT",
    path: ANNOUNCEMENT,
    body: Some(r#"{"text":"The office is closed on Friday."}"#),
    unique_key: false,
};
/// All of them write one document: with more, what is measured is how they
/// wait for each other.
const WRITERS: u32 = 1;

/// The area in one language.
struct Candidate {
    language: String,
    component: Vec<u8>,
}

/// Builds, measures, prints, keeps.
pub(crate) fn run(
    workspace: &Workspace,
    programs: &Programs,
    options: &Options,
) -> anyhow::Result<()> {
    let (candidates, not_measured) = candidates(workspace, programs)?;
    let areas = programs.folder.join("no-areas");
    fs::create_dir_all(&areas)?;
    let server = Server::start(&alone(programs, "languages", &areas))?;
    let stage = Stage { operators: Operators::of(&server)?, server, candidates };
    stage.deploy(&stage.candidates[0].component)?;
    stage.server.put(ANNOUNCEMENT, &json!({ "text": "The first one." }))?;
    let fresh = stage.deployments("compiled fresh")?;
    let cached = stage.deployments("cached")?;
    let measured = stage.loads(programs, options)?;
    let figures = fresh.into_iter().zip(cached).zip(measured);
    let rows = stage.candidates.iter().zip(figures);
    let rows = rows.map(|(candidate, ((fresh, cached), [read, write]))| Row {
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
    report.write(&workspace.target.join("bench-languages.json"))
}

/// The area in Rust and in all languages whose tools can be had, and why the
/// other tools cannot.
fn candidates(
    workspace: &Workspace,
    programs: &Programs,
) -> anyhow::Result<(Vec<Candidate>, BTreeMap<String, String>)> {
    let rust = programs.areas.join("fixtures/announcements.wasm");
    let rust = fs::read(&rust).with_context(|| format!("cannot read {}", rust.display()))?;
    let mut candidates = vec![Candidate { language: "Rust".to_owned(), component: rust }];
    let mut not_measured = BTreeMap::new();
    for language in Language::ALL {
        eprintln!("a component in {language}");
        match language.tool(&workspace.target) {
            Ok(tool) => {
                let folder = programs.folder.join(language.to_string());
                let component = tool.component(&workspace.root, &folder)?;
                candidates.push(Candidate { language: language.to_string(), component });
            }
            Err(why) => drop(not_measured.insert(language.to_string(), format!("{why:#}"))),
        }
    }
    Ok((candidates, not_measured))
}

struct Stage {
    server: Server,
    operators: Operators,
    /// At least the one in Rust.
    candidates: Vec<Candidate>,
}

impl Stage {
    /// Also where it breaks clients: what the languages' manifests promise
    /// about retries is not quite the same, and nobody retries here.
    fn deploy(&self, component: &[u8]) -> anyhow::Result<()> {
        let wish = "activate=true&force=measured";
        let told = self.operators.put(AREA, wish, component.to_vec())?;
        ensure!(told["result"] == "live", "the version is not live: {told}");
        Ok(())
    }

    /// From the beginning of the request that deploys to the first answer of
    /// the version; the second time, all are cached and none is in memory.
    fn deployments(&self, how: &str) -> anyhow::Result<Vec<Times>> {
        let times = |candidate: &Candidate| -> anyhow::Result<Times> {
            eprintln!("{}: deployed, {how}", candidate.language);
            let deployed = (0..VERSIONS).map(|number| {
                let component = numbered(&candidate.component, number);
                let begun = Instant::now();
                self.deploy(&component)?;
                self.server.get(ANNOUNCEMENT)?;
                Ok(begun.elapsed().as_secs_f64() * 1e3)
            });
            Ok(Times::of(deployed.collect::<anyhow::Result<_>>()?))
        };
        self.candidates.iter().map(times).collect()
    }

    /// Of each language in turn, the medians of reading and of publishing.
    fn loads(&self, programs: &Programs, options: &Options) -> anyhow::Result<Vec<[Measured; 2]>> {
        let mut rounds: Vec<[Vec<Measured>; 2]> =
            self.candidates.iter().map(|_| Default::default()).collect();
        let reads = Load { connections: options.connections, seconds: options.seconds };
        let writes = Load { connections: WRITERS, ..reads };
        let warm_up = Load { seconds: 1, ..reads };
        for round in 0..options.rounds {
            for (candidate, [read, written]) in self.candidates.iter().zip(&mut rounds) {
                let language = &candidate.language;
                eprintln!("{language}: round {} of {}", round + 1, options.rounds);
                self.deploy(&candidate.component)?;
                let run =
                    |operation, load| load::run(&self.server, operation, load, &programs.script);
                run(&READ, warm_up)?;
                read.push(run(&READ, reads)?);
                written.push(run(&PUBLISH, writes)?);
            }
        }
        Ok(rounds.iter().map(|both| both.each_ref().map(|rounds| medians(rounds))).collect())
    }
}
