//! What the document itself reports: scanners' results, and statements that a
//! component is not affected (VEX).

use std::borrow::Cow;

use area_sdk::Uuid;
use percent_encoding::percent_decode_str;

use super::super::Reported;
use super::super::bill::Sbom;
use super::affected::is_affected;
use super::model::{Affects, Analysis, AnalysisState, Bom, VulnerabilityItem};

/// Ids longer than this name nothing.
const MAX_ID: usize = 128;

/// Gives each vulnerability to the components it affects.
pub(super) fn report(bom: &Bom<'_>, tool: Option<&String>, sbom: &mut Sbom<'_>) {
    let mut lost = 0_usize;
    for vulnerability in &bom.vulnerabilities.0 {
        let Some(reported) = reported(vulnerability, tool) else { continue };
        for affected in &vulnerability.affects.0 {
            let found = target(bom, affected).is_some_and(|reference| {
                let hits = |version: Option<&str>| is_affected(&affected.versions.0, version);
                sbom.report(&reference, &reported, hits)
            });
            lost += usize::from(!found);
        }
    }
    if lost > 0 {
        let what = "vulnerabilities are of components that are not in the SBOM";
        sbom.warnings.push(format!("{lost} reported {what}."));
    }
}

/// The reference within this document that is meant: of a BOM-Link to an
/// element of it, what follows `#`.
fn target<'a>(bom: &Bom<'_>, affected: &'a Affects<'_>) -> Option<Cow<'a, str>> {
    let reference: &str = &affected.reference;
    let Some((link, element)) = reference.split_once('#') else {
        return Some(Cow::Borrowed(reference));
    };
    let Some(link) = link.strip_prefix("urn:cdx:") else { return Some(Cow::Borrowed(reference)) };
    let serial = link.split('/').next().and_then(|serial| serial.parse::<Uuid>().ok());
    let own = bom.serial_number.as_ref().map(|own| own.0);
    // A document without a number of its own can only mean itself.
    let of_this = own.is_none() || own == serial;
    of_this.then(|| percent_decode_str(element).decode_utf8_lossy())
}

/// What a vulnerability says; nothing, where its source has taken it back.
fn reported(vulnerability: &VulnerabilityItem<'_>, tool: Option<&String>) -> Option<Reported> {
    if vulnerability.rejected.is_some() {
        return None;
    }
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
