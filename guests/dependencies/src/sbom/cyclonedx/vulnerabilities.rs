//! What the document itself reports: scanners' results, and statements that a
//! component is not affected (VEX).

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use super::super::{Entry, Reported};
use super::model::{Analysis, AnalysisState, Bom, VulnerabilityItem};

/// Ids longer than this name nothing.
const MAX_ID: usize = 128;

/// Gives each vulnerability to the components it affects.
pub(super) fn report(bom: &Bom<'_>, entries: &mut [Entry<'_>], warnings: &mut Vec<String>) {
    if bom.vulnerabilities.is_empty() {
        return;
    }
    let places = places(entries);
    let tool = super::tool(&bom.metadata.tools);
    let mut lost = 0_usize;
    for vulnerability in &bom.vulnerabilities {
        let Some(reported) = reported(vulnerability, tool.as_ref()) else { continue };
        for affected in &vulnerability.affects {
            match places.get(target(&affected.reference).as_ref()) {
                Some(found) => {
                    for &at in found {
                        entries[at].component.reported.push(reported.clone());
                    }
                }
                None => lost += 1,
            }
        }
    }
    if lost > 0 {
        let what = "vulnerabilities are of components that are not in the SBOM";
        warnings.push(format!("{lost} reported {what}."));
    }
}

/// Where the components of each reference and purl are.
fn places(entries: &[Entry<'_>]) -> BTreeMap<String, Vec<usize>> {
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        let purl = entry.component.purl.as_ref().map(ToString::to_string);
        let reference = entry.reference.map(ToOwned::to_owned);
        let names: std::collections::BTreeSet<String> = reference.into_iter().chain(purl).collect();
        for name in names {
            places.entry(name).or_default().push(at);
        }
    }
    places
}

/// The reference that is meant: of a BOM-Link, what follows `#`.
fn target(reference: &str) -> Cow<'_, str> {
    match reference.split_once('#') {
        Some((link, element)) if link.starts_with("urn:cdx:") => {
            percent_decode_str(element).decode_utf8_lossy()
        }
        _ => Cow::Borrowed(reference),
    }
}

fn reported(vulnerability: &VulnerabilityItem<'_>, tool: Option<&String>) -> Option<Reported> {
    let good = |id: &str| {
        let id = id.trim();
        let plain =
            !id.is_empty() && id.chars().count() <= MAX_ID && !id.contains(char::is_whitespace);
        plain.then(|| id.to_owned())
    };
    let id = vulnerability.id.as_deref().and_then(good)?;
    let references = vulnerability.references.iter();
    let aliases = references.filter_map(|other| good(other.id.as_deref()?));
    Some(Reported {
        aliases: aliases.filter(|alias| *alias != id).take(100).collect(),
        tool: tool.cloned(),
        dismissed: dismissed(&vulnerability.analysis),
        id,
    })
}

/// Why the component is not affected, where somebody analysed that.
fn dismissed(analysis: &Analysis) -> Option<String> {
    let state = match analysis.state? {
        AnalysisState::FalsePositive => "false_positive",
        AnalysisState::NotAffected => "not_affected",
        AnalysisState::Resolved => "resolved",
        AnalysisState::ResolvedWithPedigree => "resolved_with_pedigree",
        AnalysisState::Exploitable | AnalysisState::InTriage => return None,
    };
    let why = analysis.justification.iter().map(|why| why.chars().take(100).collect::<String>());
    Some(std::iter::once(state.to_owned()).chain(why).collect::<Vec<_>>().join(": "))
}
