//! What a version is held against before it may answer: the version it
//! replaces, and what that one was granted.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::json;

use super::super::App;
use super::InstallError;
use crate::domain::deployment::Pointer;
use crate::domain::manifest::{Capability, Manifest};
use crate::registry::compatibility::{self, Report, Verdict};
use crate::runtime::LoadError;
use crate::store::deployments;

/// What the comparison with the live version found.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    pub(super) report: Report,
    /// Wanted beyond what the live version was granted.
    pub(super) asks: BTreeSet<Capability>,
}

/// Holds a candidate against what answers now. What breaks is refused unless
/// the operator gave a reason to `force` it.
pub(super) async fn check(
    app: &App,
    at: Option<&Pointer>,
    candidate: &Manifest,
    force: Option<&str>,
) -> Result<Checked, InstallError> {
    let Some(live) = live_manifest(app, at, &candidate.name).await? else {
        return Ok(Checked { report: Report::default(), asks: BTreeSet::new() });
    };
    let (before, now) = (Arc::clone(&live), candidate.clone());
    let comparing = tokio::task::spawn_blocking(move || compatibility::compare(&before, &now));
    let report = comparing.await.map_err(|error| LoadError::Host(error.into()))?;
    match report.verdict() {
        Verdict::Safe => {}
        Verdict::Breaking if force.is_some() => {}
        Verdict::Breaking | Verdict::Forbidden => {
            return Err(InstallError::Incompatible(Incompatible {
                area: candidate.name.clone(),
                live: live.version.to_string(),
                candidate: candidate.version.to_string(),
                report,
            }));
        }
    }
    let asks = compatibility::asks_beyond(&live, candidate);
    Ok(Checked { report, asks })
}

/// Holds a candidate against the version it would answer beside. What clients
/// are told while it does is what the live one says, so that nothing of it may
/// be broken, whatever the reason.
pub(super) async fn check_canary(
    app: &App,
    at: Option<&Pointer>,
    candidate: &Manifest,
    digest: &str,
) -> Result<Checked, InstallError> {
    match check(app, at, candidate, None).await {
        Err(InstallError::Incompatible(Incompatible { area, candidate, report, .. })) => {
            let broken: Vec<String> = report.broken().map(|broken| format!("- {broken}")).collect();
            let (digest, broken) = (digest.to_owned(), broken.join("\n"));
            Err(InstallError::NoCanary { area, version: candidate, digest, broken })
        }
        checked => checked,
    }
}

/// What a candidate asks for that would answer nobody. It may break what it
/// likes: that is what a shadow is to show.
pub(super) async fn check_shadow(
    app: &App,
    at: Option<&Pointer>,
    candidate: &Manifest,
) -> Result<Checked, InstallError> {
    let live = live_manifest(app, at, &candidate.name).await?;
    let asks = live.map(|live| compatibility::asks_beyond(&live, candidate));
    Ok(Checked { report: Report::default(), asks: asks.unwrap_or_default() })
}

/// What the live version of an area said it is, or the last one before it was
/// removed: this node's, where the node
/// does what the pointer says, else as it is stored.
async fn live_manifest(
    app: &App,
    at: Option<&Pointer>,
    area: &str,
) -> Result<Option<Arc<Manifest>>, InstallError> {
    let live = app.registry.snapshot();
    let running = live.area(area);
    // Of an area that was removed, what it was granted last counts: to remove it
    // is no way around an approval.
    let wanted = at.and_then(|at| at.digest.as_deref().or(at.previous.as_deref()));
    let in_step = running.map(|running| running.digest.as_str()) == wanted;
    let (Some(digest), false) = (wanted, in_step || app.node.is_from_file(area)) else {
        return Ok(running.map(|running| Arc::clone(&running.manifest)));
    };
    let mut connection = app.store.reader().await?;
    let stored = deployments::manifest(&mut connection, area, digest).await?;
    connection.release();
    let manifest = stored.map(|text| serde_json::from_str(&text)).transpose();
    Ok(manifest.map_err(|error| LoadError::Host(error.into()))?.map(Arc::new))
}

/// A version that asks for more than was granted, and waits.
pub(super) fn needs_approval(manifest: &Manifest, digest: &str, checked: &Checked) -> InstallError {
    let words = checked.asks.iter().map(|asked| json!(asked).to_string());
    InstallError::NeedsApproval {
        area: manifest.name.clone(),
        version: manifest.version.to_string(),
        digest: digest.to_owned(),
        asks: words.collect::<Vec<_>>().join(" and "),
    }
}

/// A candidate that others would notice.
#[derive(Clone, Debug)]
pub struct Incompatible {
    /// Which area.
    pub area: String,
    /// The version that answers.
    pub live: String,
    /// The version that is refused.
    pub candidate: String,
    /// What is different.
    pub report: Report,
}

impl fmt::Display for Incompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { area, live, candidate, report } = self;
        writeln!(f, "version {candidate} of area {area:?} breaks those who rely on {live}:")?;
        for difference in report.broken() {
            writeln!(f, "- {difference}")?;
        }
        match report.verdict() {
            Verdict::Forbidden => {
                let others = report.broken().filter(|found| found.verdict == Verdict::Forbidden);
                write!(
                    f,
                    "{} of these would break other areas and cannot be forced: publish the new \
                     shape as another collection, move its readers, and let go of the old one then",
                    others.count()
                )
            }
            _ => f.write_str(
                "mend them, or force it with a reason that the audit log keeps: `assurance area \
                 deploy FILE --force REASON`",
            ),
        }
    }
}
