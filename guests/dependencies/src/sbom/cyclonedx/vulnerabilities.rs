//! `vulnerabilities` of a CycloneDX document: results of scanners, and VEX statements.

use std::borrow::Cow;

use super::super::ReportedVulnerability;
use super::super::bill::Sbom;
use super::super::identity::bounded;
use super::model::{AffectedComponent, AffectedVersion, AnalysisState, Bom, VulnerabilityItem};
use crate::text;
use crate::vex::{StatedVersion, Statement, Target, VersionOrRange, VexState};

/// Maximum length of a vulnerability's id, in characters; longer ids are ignored.
const MAX_ID: usize = 128;
/// Maximum size of the justification of a VEX statement, in bytes.
const MAX_JUSTIFICATION: usize = 100;
/// Maximum size of the detail text of a VEX statement, in bytes.
const MAX_DETAIL: usize = 2_000;
/// Maximum number of references to unknown components in one warning.
const MOST_LISTED: usize = 20;

/// Adds each vulnerability of the document to the components that it affects, and collects the VEX
/// statements. `roots` are the references of the document's subject.
pub(super) fn report(
    bom: &Bom<'_>,
    roots: &[Cow<'_, str>],
    tool: Option<&String>,
    sbom: &mut Sbom<'_>,
) {
    let (mut lost, mut nameless, mut without_affects) = (Vec::new(), 0, 0);
    // A vulnerability that its source rejected is none.
    let all = bom.vulnerabilities.iter().flat_map(|list| &list.0);
    for vulnerability in all.filter(|one| one.rejected.is_none()) {
        let Some(reported) = reported(vulnerability, tool) else {
            nameless += 1;
            continue;
        };
        without_affects += usize::from(vulnerability.affects.0.is_empty());
        for affected in &vulnerability.affects.0 {
            let mut statement = statement(vulnerability, &reported, affected, roots);
            let own = own_reference(bom, sbom, &statement.target);
            let found = own.and_then(|own| sbom.report(&own, &reported, &statement));
            match found {
                Some(found) => statement.resolved = found,
                None if reported.state.is_none() && !sbom.is_empty() => {
                    lost.push((reported.id.clone(), affected.reference.to_string()));
                    continue;
                }
                None => {}
            }
            if reported.state.is_some() || sbom.is_empty() {
                statement.target = bounded_target(statement.target);
                sbom.statements.push(statement);
            }
        }
    }
    sbom.warnings.extend(skipped_warning(nameless, "a usable id"));
    sbom.warnings.extend(skipped_warning(without_affects, "`affects`"));
    sbom.warnings.extend(lost_warning(&lost));
}

fn skipped_warning(count: usize, lacking: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} vulnerabilities without {lacking} were skipped."))
}

fn lost_warning(lost: &[(String, String)]) -> Option<String> {
    let places: Vec<String> =
        lost.iter().map(|(id, reference)| format!("{id} of {}", bounded(reference))).collect();
    let listed = text::listed(places.iter(), MOST_LISTED);
    let what = "reported vulnerabilities are of components that are not in the SBOM";
    (!lost.is_empty()).then(|| format!("{} {what}: {listed}.", lost.len()))
}

/// Returns the reference within this document to which the target of a VEX statement points; `None`
/// if the target is the subject or another document.
fn own_reference(bom: &Bom<'_>, sbom: &Sbom<'_>, target: &Target) -> Option<String> {
    match target {
        Target::Product => None,
        Target::Component(reference) => Some(reference.clone()),
        Target::Link { serial, element, .. } => {
            let own = bom.serial_number.as_ref().map(|own| own.0);
            // A BOM-Link in a document without a serial number can only mean this document, if it
            // has components.
            let means_this = own.map_or(!sbom.is_empty(), |own| own == *serial);
            element.clone().filter(|_| means_this)
        }
    }
}

fn statement(
    vulnerability: &VulnerabilityItem<'_>,
    reported: &ReportedVulnerability,
    affected: &AffectedComponent<'_>,
    roots: &[Cow<'_, str>],
) -> Statement {
    let detail = vulnerability.analysis.detail.as_deref();
    Statement {
        advisory_id: reported.id.clone(),
        aliases: reported.aliases.clone(),
        state: reported.state.unwrap_or(VexState::Affected),
        justification: reported.justification.clone(),
        detail: detail.map(|detail| text::bounded(detail, MAX_DETAIL)),
        reference: bounded(&affected.reference),
        target: Target::of(&affected.reference, roots),
        versions: affected.versions.0.iter().filter_map(stated).collect(),
        severity: reported.severity,
        resolved: Vec::new(),
    }
}

/// Truncates the references in a statement's target to the size with which components store them.
fn bounded_target(target: Target) -> Target {
    match target {
        Target::Product => Target::Product,
        Target::Component(reference) => Target::Component(bounded(&reference)),
        Target::Link { serial, version, element } => {
            Target::Link { serial, version, element: element.as_deref().map(bounded) }
        }
    }
}

fn stated(version: &AffectedVersion<'_>) -> Option<StatedVersion> {
    let text = match (&version.version, &version.range) {
        (Some(exact), _) => VersionOrRange::Exact(bounded(exact)),
        (None, Some(range)) => VersionOrRange::Range(bounded(range)),
        (None, None) => return None,
    };
    Some(StatedVersion { text, status: version.status })
}

/// Converts a vulnerability of a CycloneDX document; `None` if it has no valid id.
fn reported(
    vulnerability: &VulnerabilityItem<'_>,
    tool: Option<&String>,
) -> Option<ReportedVulnerability> {
    let good = |id: &str| {
        let id = id.replace('\0', "");
        let id = id.trim();
        let plain =
            !id.is_empty() && id.chars().count() <= MAX_ID && !id.contains(char::is_whitespace);
        plain.then(|| id.to_owned())
    };
    let id = vulnerability.id.as_deref().and_then(good)?;
    let references = vulnerability.references.0.iter();
    let aliases = references.filter_map(|other| good(other.id.as_deref()?));
    let analysis = &vulnerability.analysis;
    let justification = analysis.justification.as_deref().filter(|why| !why.is_empty());
    Some(ReportedVulnerability {
        aliases: aliases.filter(|alias| *alias != id).take(100).collect(),
        tool: tool.cloned(),
        state: analysis.state.map(VexState::from),
        justification: justification.map(|why| text::bounded(why, MAX_JUSTIFICATION)),
        severity: vulnerability.ratings.best(),
        id,
    })
}

impl From<AnalysisState> for VexState {
    fn from(state: AnalysisState) -> Self {
        match state {
            AnalysisState::Exploitable => Self::Exploitable,
            AnalysisState::FalsePositive => Self::FalsePositive,
            AnalysisState::InTriage => Self::InTriage,
            AnalysisState::NotAffected => Self::NotAffected,
            AnalysisState::Resolved => Self::Resolved,
            AnalysisState::ResolvedWithPedigree => Self::ResolvedWithPedigree,
        }
    }
}
