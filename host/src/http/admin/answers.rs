//! What the operators' API answers. The types that are serialised here are
//! those that its OpenAPI document describes.

use schemars::JsonSchema;
use serde::Serialize;

use crate::app::areas::{CameTo, Deployed, Overview};
use crate::budgets::{self, Usage};
use crate::config::Budget;
use crate::domain::deployment::{Deployment, NodeReport, Pointer};
use crate::domain::manifest::Capability;
use crate::domain::trial::{Mode, Trial};
use crate::registry::compatibility::{self, Verdict};
use crate::registry::{self, AreaVersion, Change, Counts, OnTrial, Told};

/// Whether the service is there.
#[derive(Serialize, JsonSchema)]
pub(super) struct Health {
    /// `live`.
    pub(super) status: &'static str,
}

/// A page of a list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub(super) struct Page<T> {
    /// The newest first.
    pub(super) items: Vec<T>,
    /// The `cursor` of the next page, if there may be one.
    pub(super) next_cursor: Option<String>,
}

/// Every area.
#[derive(Serialize, JsonSchema)]
pub(super) struct Areas {
    pub(super) areas: Vec<Area>,
}

/// What answers, if anything does, and what operators decided.
#[derive(Serialize, JsonSchema)]
pub(super) struct Area {
    name: String,
    /// Of the version that answers at this node; nothing: none does.
    digest: Option<String>,
    #[serde(flatten)]
    running: Option<Declared>,
    source: Source,
    /// Which version every node is to run, as operators decided last.
    live: Option<Pointer>,
    /// What a rollback brings.
    previous: Option<Deployment>,
    /// Versions that are kept and have yet to be live.
    staged: Vec<Deployment>,
    /// What is on trial, or was last.
    trial: Option<Tried>,
    /// What each node says.
    nodes: Vec<NodeReport>,
}

/// Where the version came from that answers at this node.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Source {
    /// Nothing answers.
    None,
    /// This node's folder.
    Folder,
    /// Operators have deployed it.
    Deployed,
}

/// A version of an area.
#[derive(Serialize, JsonSchema)]
pub(super) struct Version {
    /// The area.
    name: String,
    /// SHA-256 of the component, lower-case hex.
    digest: String,
    #[serde(flatten)]
    declared: Declared,
}

/// What a version says it is, in short.
#[derive(Serialize, JsonSchema)]
struct Declared {
    version: String,
    summary: String,
    /// What it asks for.
    capabilities: Vec<Capability>,
    /// The generation of the contract that it speaks.
    generation: &'static str,
    imports: Vec<String>,
    /// Ids of its operations.
    operations: Vec<String>,
    /// Names of the events that it publishes.
    events: Vec<String>,
    /// Names of the events that it hears.
    subscriptions: Vec<String>,
    /// Names of the kinds of jobs that it runs.
    jobs: Vec<String>,
}

/// A trial as operators decided it, and what it has shown.
#[derive(Serialize, JsonSchema)]
struct Tried {
    #[serde(flatten)]
    trial: Trial,
    /// What calls at this node have shown, where the trial goes on here.
    #[serde(skip_serializing_if = "Option::is_none")]
    figures: Option<Figures>,
}

/// What calls of both versions have shown since a trial began.
#[derive(Serialize, JsonSchema)]
struct Figures {
    candidate: Told,
    live: Told,
}

/// How the answers of a shadow differ.
#[derive(Serialize, JsonSchema)]
pub(super) struct Differences {
    trial: Trial,
    /// Copies of requests, and what became of them.
    requests: Counts,
    /// What differs most often first.
    differences: Vec<registry::Difference>,
    live: Told,
    candidate: Told,
}

/// What was done.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// It was so before.
    Unchanged,
    /// The version is kept and waits.
    Staged,
    /// The version answers.
    Live,
    /// The version before answers again.
    RolledBack,
    /// The area is gone; what it has stored is not.
    Removed,
    /// The version was granted what it asks for.
    Approved,
    /// The version answers for some workspaces.
    Canary,
    /// The version answers copies of requests.
    Shadow,
    /// The trial has ended.
    Stopped,
}

/// What came of an operator's decision.
#[derive(Serialize, JsonSchema)]
pub(super) struct Decided {
    result: Outcome,
    /// What answers now; of an area that was removed, what did.
    #[serde(skip_serializing_if = "Option::is_none")]
    area: Option<Version>,
    /// What answered before.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<Version>,
    /// The trial that was begun or ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<Trial>,
}

/// What came of a component that was sent.
#[derive(Serialize, JsonSchema)]
pub(super) struct Sent {
    #[serde(flatten)]
    decided: Decided,
    /// SHA-256 of the component, lower-case hex.
    digest: String,
    /// The worst of the differences.
    verdict: Verdict,
    /// From the version that was live.
    differences: Vec<compatibility::Difference>,
}

/// Who uses how much on this node.
#[derive(Serialize, JsonSchema)]
pub(super) struct Used {
    /// All of them.
    pub(super) areas: Vec<Standing>,
    /// Those that use most.
    pub(super) workspaces: Vec<Standing>,
}

/// Where an area or a workspace stands.
#[derive(Serialize, JsonSchema)]
pub(super) struct Standing {
    /// The area's name or the workspace's id.
    name: String,
    /// What it may use.
    budget: Budget,
    /// Calls that run.
    running: u32,
    /// Memory they have, beyond the first MiB of each, in bytes.
    memory_bytes: u64,
    /// The most that one call has had since the node began, all of it.
    call_memory_peak_bytes: u64,
    this_minute: Minute,
    last_minute: Minute,
    /// Calls that were refused.
    refused_this_minute: u64,
}

/// What was used in a minute.
#[derive(Serialize, JsonSchema)]
struct Minute {
    calls: u64,
    /// Processor time, in milliseconds.
    cpu_ms: u64,
    host_calls: u64,
    /// Read and written.
    documents: u64,
}

impl Area {
    pub(super) fn of(name: &str, area: &Overview) -> Self {
        let running = area.running.as_deref();
        Self {
            name: name.to_owned(),
            digest: running.map(|version| version.digest.clone()),
            running: running.map(Declared::of),
            source: match (running, area.from_folder) {
                (None, _) => Source::None,
                (Some(_), true) => Source::Folder,
                (Some(_), false) => Source::Deployed,
            },
            live: area.pointer.clone(),
            previous: area.previous.clone(),
            staged: area.staged.clone(),
            trial: area.trial.as_ref().map(|trial| Tried::of(trial, area)),
            nodes: area.nodes.clone(),
        }
    }
}

impl Version {
    pub(super) fn of(version: &AreaVersion) -> Self {
        Self {
            name: version.manifest.name.clone(),
            digest: version.digest.clone(),
            declared: Declared::of(version),
        }
    }
}

impl Declared {
    fn of(version: &AreaVersion) -> Self {
        let manifest = &version.manifest;
        let operations = manifest.routes.iter().map(|route| route.operation_id.clone());
        Self {
            version: manifest.version.to_string(),
            summary: manifest.summary.clone(),
            capabilities: manifest.capabilities.clone(),
            generation: version.generation,
            imports: version.imports.clone(),
            operations: operations.collect(),
            events: manifest.publishes.iter().map(|event| event.name.clone()).collect(),
            subscriptions: manifest.subscriptions.clone(),
            jobs: manifest.jobs.iter().map(|job| job.name.clone()).collect(),
        }
    }
}

impl Tried {
    fn of(trial: &Trial, area: &Overview) -> Self {
        let here = area.on_trial.as_ref().filter(|here| here.trial == *trial);
        let figures = here.map(|here| Figures {
            candidate: here.figures.candidate.told(),
            live: here.figures.live.told(),
        });
        Self { trial: trial.clone(), figures }
    }
}

impl Differences {
    pub(super) fn of(here: &OnTrial) -> Self {
        let (requests, differences) = here.figures.compared.told_all();
        let (live, candidate) = (here.figures.live.told(), here.figures.candidate.told());
        Self { trial: here.trial.clone(), requests, differences, live, candidate }
    }
}

impl Decided {
    /// Without anything to tell of it.
    pub(super) fn just(result: Outcome) -> Self {
        Self { result, area: None, replaced: None, trial: None }
    }

    pub(super) fn changed(result: Outcome, change: &Change) -> Self {
        let area = change.now.as_deref().map(Version::of);
        let replaced = change.before.as_deref().map(Version::of);
        Self { area, replaced, ..Self::just(result) }
    }

    pub(super) fn removed(change: &Change) -> Self {
        let area = change.before.as_deref().map(Version::of);
        Self { area, ..Self::just(Outcome::Removed) }
    }

    pub(super) fn tried(result: Outcome, trial: Trial) -> Self {
        Self { trial: Some(trial), ..Self::just(result) }
    }
}

impl Sent {
    /// What answers now is told, whatever became of the component.
    pub(super) fn of(deployed: Deployed, answers: Option<&AreaVersion>) -> Self {
        let mut decided = match deployed.came_to {
            CameTo::Unchanged => Decided::just(Outcome::Unchanged),
            CameTo::Staged => Decided::just(Outcome::Staged),
            CameTo::Live(change) => Decided::changed(Outcome::Live, &change),
            CameTo::OnTrial(trial) => Decided::tried(begun(trial.mode), trial),
        };
        decided.area = answers.map(Version::of);
        let verdict = deployed.report.verdict();
        let differences = deployed.report.differences;
        Self { decided, digest: deployed.digest, verdict, differences }
    }
}

/// As the beginning of a trial is told.
pub(super) fn begun(mode: Mode) -> Outcome {
    match mode {
        Mode::Canary => Outcome::Canary,
        Mode::Shadow => Outcome::Shadow,
    }
}

impl Standing {
    pub(super) fn of(one: &budgets::Standing) -> Self {
        Self {
            name: one.name.clone(),
            budget: one.budget,
            running: one.running,
            memory_bytes: one.memory_bytes,
            call_memory_peak_bytes: one.call_memory_peak_bytes,
            this_minute: Minute::of(one.this_minute),
            last_minute: Minute::of(one.last_minute),
            refused_this_minute: one.refused,
        }
    }
}

impl Minute {
    fn of(usage: Usage) -> Self {
        let Usage { calls, cpu_us, host_calls, documents } = usage;
        Self { calls, cpu_ms: cpu_us / 1_000, host_calls, documents }
    }
}
