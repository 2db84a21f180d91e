//! Response bodies of the operators' API. The same types are the source of its OpenAPI document.

use schemars::JsonSchema;
use serde::Serialize;

use assurance_contract::compatibility::{self, Compatibility};
use assurance_core::budgets::{self, Usage};
use assurance_core::config::BudgetConfig;
use assurance_core::domain::deployment::{LivePointer, NodeAreaReport, StoredVersion};
use assurance_core::domain::manifest::Capability;
use assurance_core::domain::trial::{Trial, TrialMode};
use assurance_service::app::areas::{AreaOverview, DeployOutcome, DeployReport};
use assurance_service::registry::{
    self, AreaVersion, LiveVersionChange, ShadowCounts, TrialSideStats, VersionOnTrial,
};

/// Liveness of the process.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "HealthView")]
pub(super) struct LivenessView {
    /// Always `live`.
    pub(super) status: &'static str,
}

/// One page of a list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub(super) struct PageView<T> {
    /// Items, newest first.
    pub(super) items: Vec<T>,
    /// Value for the `cursor` of the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

/// List of all areas.
#[derive(Serialize, JsonSchema)]
pub(super) struct AreasView {
    pub(super) areas: Vec<AreaView>,
}

/// The version of an area on this node, and the operators' decisions.
#[derive(Serialize, JsonSchema)]
pub(super) struct AreaView {
    name: String,
    /// Digest of the version that serves on this node, or null.
    digest: Option<String>,
    #[serde(flatten)]
    running: Option<ManifestView>,
    source: VersionSourceView,
    /// Version that every node is to serve, by the operators' last decision.
    live: Option<LivePointer>,
    /// Version that a rollback makes live.
    previous: Option<StoredVersion>,
    /// Stored versions that were never live.
    staged: Vec<StoredVersion>,
    /// The running trial, or the last one.
    trial: Option<TrialView>,
    /// State of the area on each node.
    nodes: Vec<NodeAreaReport>,
}

/// Origin of the version that serves on this node.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SourceView")]
enum VersionSourceView {
    /// No version of the area serves on this node.
    None,
    /// A component in this node's folder of areas.
    Folder,
    /// A deployment by an operator.
    Deployed,
}

/// A version of an area.
#[derive(Serialize, JsonSchema)]
pub(super) struct VersionView {
    /// Area name.
    name: String,
    /// SHA-256 of the component, lower-case hex.
    digest: String,
    #[serde(flatten)]
    declared: ManifestView,
}

/// Summary of a version's manifest.
#[derive(Serialize, JsonSchema)]
struct ManifestView {
    version: String,
    summary: String,
    /// Capabilities that the version requests.
    capabilities: Vec<Capability>,
    /// Generation of the contract that the component uses.
    generation: &'static str,
    imports: Vec<String>,
    /// Ids of the version's operations.
    operations: Vec<String>,
    /// Names of the events that the version publishes.
    events: Vec<String>,
    /// Names of the events that the version subscribes to.
    subscriptions: Vec<String>,
    /// Kinds of jobs that the version runs.
    jobs: Vec<String>,
}

/// A trial with its results on this node.
#[derive(Serialize, JsonSchema)]
struct TrialView {
    #[serde(flatten)]
    trial: Trial,
    /// Statistics of calls on this node while the trial runs here.
    #[serde(skip_serializing_if = "Option::is_none")]
    figures: Option<TrialFiguresView>,
}

/// Statistics of the calls of both versions since a trial began.
#[derive(Serialize, JsonSchema)]
struct TrialFiguresView {
    candidate: TrialSideStats,
    live: TrialSideStats,
}

/// Differences between the responses of a shadow and the live version.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DifferencesView")]
pub(super) struct ShadowDifferencesView {
    trial: Trial,
    /// Number of copied requests, by result.
    requests: ShadowCounts,
    /// Differences by operation and position in the response, most frequent first.
    differences: Vec<registry::ResponseDifference>,
    live: TrialSideStats,
    candidate: TrialSideStats,
}

/// Effect of an operator's request.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "OutcomeView")]
pub(super) enum OperatorActionEffectView {
    /// The request changed nothing.
    Unchanged,
    /// The version is stored but not live.
    Staged,
    /// The version is live.
    Live,
    /// The former version is live again.
    RolledBack,
    /// The area was removed; its data is kept.
    Removed,
    /// The version's capabilities were approved.
    Approved,
    /// The version serves some workspaces.
    Canary,
    /// The version executes copies of requests.
    Shadow,
    /// The trial ended.
    Stopped,
    /// A dry run found nothing wrong; nothing has changed.
    Accepted,
    /// A dry run found reasons to refuse the deployment; nothing has changed.
    Refused,
}

/// Result of an operator's decision.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DecisionView")]
pub(super) struct DecisionResultView {
    result: OperatorActionEffectView,
    /// The live version; after a removal the former one.
    #[serde(skip_serializing_if = "Option::is_none")]
    area: Option<VersionView>,
    /// The former live version.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<VersionView>,
    /// The trial that began or ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<Trial>,
    /// Digest of the version whose capabilities were approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<String>,
}

/// Result of a deployment.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeployedView")]
pub(super) struct DeployResultView {
    #[serde(flatten)]
    decided: DecisionResultView,
    /// SHA-256 of the component, lower-case hex.
    digest: String,
    /// The most severe compatibility class of the differences. Null if a dry run could not load
    /// the component or its manifest is invalid: compatibility, conflicts with other areas and
    /// calls of the version are not checked then.
    verdict: Option<Compatibility>,
    /// Differences from the former live version.
    differences: Vec<compatibility::ContractChange>,
    /// Reasons for which the deployment would be refused; only in the response to a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<RefusalReasonView>>,
}

/// One reason for which a deployment would be refused.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FindingView")]
pub(super) struct RefusalReasonView {
    /// Code of the problem that the deployment would return.
    pub(super) code: &'static str,
    pub(super) detail: String,
}

/// Usage of areas and workspaces on this node.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UsageView")]
pub(super) struct BudgetsView {
    /// Usage of every area.
    pub(super) areas: Vec<BudgetView>,
    /// Usage of the busiest workspaces.
    pub(super) workspaces: Vec<BudgetView>,
}

/// Usage of one area or workspace, and its budget.
#[derive(Serialize, JsonSchema)]
pub(super) struct BudgetView {
    /// Area name or workspace id.
    name: String,
    /// Configured limits of the area or workspace.
    budget: BudgetConfig,
    /// Number of running calls.
    running: u32,
    /// Memory of running calls beyond the first MiB of each, in bytes.
    memory_bytes: u64,
    /// Maximum memory of one call since the node started, in bytes.
    call_memory_peak_bytes: u64,
    this_minute: MinuteUsageView,
    last_minute: MinuteUsageView,
    /// Number of calls refused in the current minute.
    refused_this_minute: u64,
}

/// Usage of an area or workspace in one minute.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MinuteView")]
struct MinuteUsageView {
    calls: u64,
    /// Processor time of the calls, in milliseconds.
    cpu_ms: u64,
    host_calls: u64,
    /// Number of documents read and written.
    documents: u64,
}

impl AreaView {
    pub(super) fn of(name: &str, area: &AreaOverview) -> Self {
        let running = area.running.as_deref();
        Self {
            name: name.to_owned(),
            digest: running.map(|version| version.digest.clone()),
            running: running.map(ManifestView::of),
            source: match (running, area.from_folder) {
                (None, _) => VersionSourceView::None,
                (Some(_), true) => VersionSourceView::Folder,
                (Some(_), false) => VersionSourceView::Deployed,
            },
            live: area.pointer.clone(),
            previous: area.previous.clone(),
            staged: area.staged.clone(),
            trial: area.trial.as_ref().map(|trial| TrialView::of(trial, area)),
            nodes: area.nodes.clone(),
        }
    }
}

impl VersionView {
    pub(super) fn of(version: &AreaVersion) -> Self {
        Self {
            name: version.manifest.name.clone(),
            digest: version.digest.clone(),
            declared: ManifestView::of(version),
        }
    }
}

impl ManifestView {
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

impl TrialView {
    fn of(trial: &Trial, area: &AreaOverview) -> Self {
        let here = area.on_trial.as_ref().filter(|here| here.trial == *trial);
        let figures = here.map(|here| TrialFiguresView {
            candidate: here.figures.candidate.stats(),
            live: here.figures.live.stats(),
        });
        Self { trial: trial.clone(), figures }
    }
}

impl ShadowDifferencesView {
    pub(super) fn of(here: &VersionOnTrial) -> Self {
        let (requests, differences) = here.figures.compared.report();
        let (live, candidate) = (here.figures.live.stats(), here.figures.candidate.stats());
        Self { trial: here.trial.clone(), requests, differences, live, candidate }
    }
}

impl DecisionResultView {
    /// Returns a decision's result whose members for versions and trial are empty.
    pub(super) fn just(result: OperatorActionEffectView) -> Self {
        Self { result, area: None, replaced: None, trial: None, approved: None }
    }

    pub(super) fn changed(result: OperatorActionEffectView, change: &LiveVersionChange) -> Self {
        let area = change.now.as_deref().map(VersionView::of);
        let replaced = change.before.as_deref().map(VersionView::of);
        Self { area, replaced, ..Self::just(result) }
    }

    pub(super) fn removed(change: &LiveVersionChange) -> Self {
        let area = change.before.as_deref().map(VersionView::of);
        Self { area, ..Self::just(OperatorActionEffectView::Removed) }
    }

    pub(super) fn approved(digest: String) -> Self {
        Self { approved: Some(digest), ..Self::just(OperatorActionEffectView::Approved) }
    }

    pub(super) fn tried(result: OperatorActionEffectView, trial: Trial) -> Self {
        Self { trial: Some(trial), ..Self::just(result) }
    }
}

impl DeployResultView {
    /// Returns the view of a deployment; `answers` is the live version.
    pub(super) fn of(deployed: DeployReport, answers: Option<&AreaVersion>) -> Self {
        let mut decided = match deployed.outcome {
            DeployOutcome::Unchanged => {
                DecisionResultView::just(OperatorActionEffectView::Unchanged)
            }
            DeployOutcome::Staged => DecisionResultView::just(OperatorActionEffectView::Staged),
            DeployOutcome::Live(change) => {
                DecisionResultView::changed(OperatorActionEffectView::Live, &change)
            }
            DeployOutcome::VersionOnTrial(trial) => {
                DecisionResultView::tried(begun(trial.mode), trial)
            }
        };
        decided.area = answers.map(VersionView::of);
        let verdict = Some(deployed.report.verdict());
        let differences = deployed.report.differences;
        Self { decided, digest: deployed.digest, verdict, differences, findings: None }
    }

    /// Returns the view of a dry run.
    pub(super) fn dry(
        digest: String,
        report: Option<compatibility::CompatibilityReport>,
        findings: Vec<RefusalReasonView>,
    ) -> Self {
        let result = if findings.is_empty() {
            OperatorActionEffectView::Accepted
        } else {
            OperatorActionEffectView::Refused
        };
        let verdict = report.as_ref().map(compatibility::CompatibilityReport::verdict);
        let differences = report.map(|report| report.differences).unwrap_or_default();
        let decided = DecisionResultView::just(result);
        Self { decided, digest, verdict, differences, findings: Some(findings) }
    }
}

/// Returns the result of a request that began a trial.
pub(super) fn begun(mode: TrialMode) -> OperatorActionEffectView {
    match mode {
        TrialMode::Canary => OperatorActionEffectView::Canary,
        TrialMode::Shadow => OperatorActionEffectView::Shadow,
    }
}

impl BudgetView {
    pub(super) fn of(one: &budgets::BudgetStatus) -> Self {
        Self {
            name: one.name.clone(),
            budget: one.budget,
            running: one.running,
            memory_bytes: one.memory_bytes,
            call_memory_peak_bytes: one.call_memory_peak_bytes,
            this_minute: MinuteUsageView::of(one.this_minute),
            last_minute: MinuteUsageView::of(one.last_minute),
            refused_this_minute: one.refused,
        }
    }
}

impl MinuteUsageView {
    fn of(usage: Usage) -> Self {
        let Usage { calls, cpu_us, host_calls, documents } = usage;
        Self { calls, cpu_ms: cpu_us / 1_000, host_calls, documents }
    }
}
