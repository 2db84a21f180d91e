//! What the document itself reports: scanners' results, and statements that a
//! component is not affected (VEX).

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::super::Reported;
use super::super::bill::Sbom;
use super::model::{Analysis, AnalysisState, Bom, VulnerabilityItem};

/// Ids longer than this name nothing.
const MAX_ID: usize = 128;

/// Gives each vulnerability to the components it affects.
pub(super) fn report(bom: &Bom<'_>, tool: Option<&String>, sbom: &mut Sbom<'_>) {
    let mut lost = 0_usize;
    for vulnerability in &bom.vulnerabilities.0 {
        let Some(reported) = reported(vulnerability, tool) else { continue };
        for affected in &vulnerability.affects.0 {
            lost += usize::from(!sbom.report(&target(&affected.reference), &reported));
        }
    }
    if lost > 0 {
        let what = "vulnerabilities are of components that are not in the SBOM";
        sbom.warnings.push(format!("{lost} reported {what}."));
    }
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
    let references = vulnerability.references.0.iter();
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
