//! Compares a version with the live one before it may serve: what clients and
//! other areas rely on, and which capabilities were granted.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::super::App;
use super::error::{IncompatibleVersion, InstallError};
use super::rows;
use super::state::DesiredArea;
use crate::registry::AreaVersion;
use assurance_contract::compatibility::{self, Compatibility, CompatibilityReport};
use assurance_core::domain::manifest::{Capability, Manifest};
use assurance_runtime::LoadError;

/// As what a version is compared.
#[derive(Clone, Copy)]
pub(super) enum Comparison<'a> {
    /// In place of the live version. What breaks is refused, unless the
    /// operator gives a reason to `force` it.
    Live { force: Option<&'a str> },
    /// Next to the live version, whose manifest clients go on reading: nothing
    /// of it may break, forced or not.
    Canary,
    /// Serving nobody: it may break anything. That is what a shadow shows.
    Shadow,
}

/// Result of a comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct CompatibilityCheck {
    pub(super) report: CompatibilityReport,
    /// Capabilities beyond those that the live version was granted.
    pub(super) asks: BTreeSet<Capability>,
}

/// Compares a version with the live one.
pub(super) async fn check(
    app: &App,
    desired: &DesiredArea,
    candidate: &AreaVersion,
    comparison: Comparison<'_>,
) -> Result<CompatibilityCheck, InstallError> {
    let Some(live) = live_manifest(app, desired, &candidate.manifest.name).await? else {
        return Ok(CompatibilityCheck::default());
    };
    let asks = compatibility::asks_beyond(&live, &candidate.manifest);
    if let Comparison::Shadow = comparison {
        return Ok(CompatibilityCheck { asks, ..CompatibilityCheck::default() });
    }
    let (before, now) = (Arc::clone(&live), Arc::clone(&candidate.manifest));
    let comparing = tokio::task::spawn_blocking(move || compatibility::compare(&before, &now));
    let report = comparing.await.map_err(|error| LoadError::Host(error.into()))?;
    match (report.verdict(), comparison) {
        (Compatibility::Safe, _)
        | (Compatibility::Breaking, Comparison::Live { force: Some(_) }) => {
            Ok(CompatibilityCheck { report, asks })
        }
        (_, Comparison::Canary) => Err(no_canary(candidate, &report)),
        _ => Err(InstallError::Incompatible(IncompatibleVersion {
            area: candidate.manifest.name.clone(),
            live: live.version.to_string(),
            candidate: candidate.manifest.version.to_string(),
            report,
        })),
    }
}

/// The manifest of the live version, or of the last one before the area was
/// removed: to remove an area is no way around an approval. It is this node's,
/// if the node runs what the row names; otherwise the stored one.
async fn live_manifest(
    app: &App,
    desired: &DesiredArea,
    area: &str,
) -> Result<Option<Arc<Manifest>>, InstallError> {
    let live = app.registry.snapshot();
    let running = live.area(area);
    let named = desired.live().or(desired.previous());
    let in_step = running.map(|running| running.digest.as_str()) == named;
    let (Some(digest), false) = (named, in_step || app.node.is_from_file(area)) else {
        return Ok(running.map(|running| Arc::clone(&running.manifest)));
    };
    let stored = rows::manifest(app, area, digest).await?;
    let manifest = stored.map(|text| serde_json::from_str(&text)).transpose();
    Ok(manifest.map_err(|error| LoadError::Host(error.into()))?.map(Arc::new))
}

fn no_canary(candidate: &AreaVersion, report: &CompatibilityReport) -> InstallError {
    let broken: Vec<String> = report.broken().map(|broken| format!("- {broken}")).collect();
    InstallError::NoCanary {
        area: candidate.manifest.name.clone(),
        version: candidate.manifest.version.to_string(),
        digest: candidate.digest.clone(),
        broken: broken.join("\n"),
    }
}

/// The refusal of a version that waits for an approval.
pub(super) fn needs_approval(
    candidate: &AreaVersion,
    checked: &CompatibilityCheck,
) -> InstallError {
    let words = checked.asks.iter().map(|asked| json!(asked).to_string());
    InstallError::NeedsApproval {
        area: candidate.manifest.name.clone(),
        version: candidate.manifest.version.to_string(),
        digest: candidate.digest.clone(),
        asks: words.collect::<Vec<_>>().join(" and "),
    }
}
