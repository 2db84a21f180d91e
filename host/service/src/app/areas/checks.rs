//! Checks whether a version may replace or accompany the live one:
//! compatibility with clients and other areas, and capabilities in addition to
//! those of the live version.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::super::App;
use super::error::{AreaActionError, IncompatibleVersion};
use super::rows;
use super::state::DesiredArea;
use crate::registry::AreaVersion;
use assurance_contract::ContractLimits;
use assurance_contract::compatibility::{self, Compatibility, CompatibilityReport};
use assurance_core::domain::deployment::VersionStage;
use assurance_core::domain::manifest::{Capability, Manifest};
use assurance_runtime::LoadError;

/// Planned use of a new version: live, canary or shadow. Determines which
/// incompatibilities with the live version are refused.
#[derive(Clone, Copy)]
pub(super) enum PlannedVersionUse<'a> {
    /// The version replaces the live one. A breaking change is refused unless
    /// the operator gives a reason in `force`. `kept`: it is stored already.
    Live { force: Option<&'a str>, kept: bool },
    /// The version serves some workspaces next to the live one, whose manifest
    /// clients read. Every breaking change is refused, even with a reason.
    Canary,
    /// The version's responses are discarded, so no incompatibility is refused.
    Shadow,
}

/// Result of comparing a version with the live one: differences and additional
/// capabilities. Empty if no version is live.
#[derive(Clone, Debug, Default)]
pub(super) struct CompatibilityCheckResult {
    pub(super) report: CompatibilityReport,
    /// Capabilities that the version requests in addition to those of the live
    /// version.
    pub(super) asks: BTreeSet<Capability>,
}

/// Compares a version with the live one. Returns an error if the version is not
/// compatible enough for its planned use.
pub(super) async fn check(
    app: &App,
    desired: &DesiredArea,
    candidate: &AreaVersion,
    comparison: PlannedVersionUse<'_>,
) -> Result<CompatibilityCheckResult, AreaActionError> {
    let Some(live) = live_manifest(app, desired, &candidate.manifest.name).await? else {
        return Ok(CompatibilityCheckResult::default());
    };
    let asks = compatibility::additional_capabilities(&live, &candidate.manifest);
    if let PlannedVersionUse::Shadow = comparison {
        return Ok(CompatibilityCheckResult { asks, ..CompatibilityCheckResult::default() });
    }
    let (before, now) = (Arc::clone(&live), Arc::clone(&candidate.manifest));
    let limits = ContractLimits::from(&app.config);
    let comparing =
        tokio::task::spawn_blocking(move || compatibility::compare_within(&limits, &before, &now));
    let report = comparing.await.map_err(|error| LoadError::Host(error.into()))?;
    match (report.verdict(), comparison) {
        (Compatibility::Safe, _)
        | (Compatibility::Breaking, PlannedVersionUse::Live { force: Some(_), .. }) => {
            Ok(CompatibilityCheckResult { report, asks })
        }
        (_, PlannedVersionUse::Canary) => Err(no_canary(candidate, &report)),
        _ => Err(AreaActionError::Incompatible(IncompatibleVersion {
            area: candidate.manifest.name.clone(),
            live: live.version.to_string(),
            candidate: candidate.manifest.version.to_string(),
            command: match comparison {
                PlannedVersionUse::Live { kept: true, .. } => {
                    format!("activate {} --digest {}", candidate.manifest.name, candidate.digest)
                }
                _ => "deploy FILE".to_owned(),
            },
            report,
        })),
    }
}

/// Returns the manifest of the live version, or of the last live version if the
/// area was removed: removing and adding an area must not avoid an approval. It
/// is the manifest of the version that this node runs if the database names the
/// same version, else the stored one.
async fn live_manifest(
    app: &App,
    desired: &DesiredArea,
    area: &str,
) -> Result<Option<Arc<Manifest>>, AreaActionError> {
    let live = app.registry.snapshot();
    let running = live.area(area);
    let named = desired.live().or(desired.previous());
    let in_step = running.map(|running| running.digest.as_str()) == named;
    let (Some(digest), false) = (named, in_step || app.node.is_from_file(area)) else {
        return Ok(running.map(|running| Arc::clone(&running.manifest)));
    };
    Ok(rows::manifest(app, area, digest).await?.map(Arc::new))
}

fn no_canary(candidate: &AreaVersion, report: &CompatibilityReport) -> AreaActionError {
    let broken: Vec<String> = report.broken().map(|broken| format!("- {broken}")).collect();
    AreaActionError::NoCanary {
        area: candidate.manifest.name.clone(),
        version: candidate.manifest.version.to_string(),
        digest: candidate.digest.clone(),
        broken: broken.join("\n"),
    }
}

/// Returns whether a version may get no traffic before an operator approves it: it waits for an
/// approval, and still requests capabilities that the live version does not have.
pub(super) fn waits_for_approval(stage: VersionStage, checked: &CompatibilityCheckResult) -> bool {
    stage == VersionStage::AwaitingApproval && !checked.asks.is_empty()
}

/// Returns the error for a version that waits for an operator's approval of its
/// additional capabilities.
pub(super) fn needs_approval(
    candidate: &AreaVersion,
    checked: &CompatibilityCheckResult,
) -> AreaActionError {
    let words = checked.asks.iter().map(|asked| json!(asked).to_string());
    AreaActionError::NeedsApproval {
        area: candidate.manifest.name.clone(),
        version: candidate.manifest.version.to_string(),
        digest: candidate.digest.clone(),
        asks: words.collect::<Vec<_>>().join(" and "),
        options: if checked.report.broken().next().is_none() { "" } else { " --force REASON" },
    }
}
