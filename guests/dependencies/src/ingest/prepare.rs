//! Prepares an import before components are stored: stores which SBOMs the audit imports, and
//! reports SBOMs of the former audit that this audit lacks.

use std::collections::BTreeSet;

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::select::{ChosenInput, ImportSelection};
use super::{AuditStarted, BranchInventoryHead, ImportCounts, ImportStage};
use crate::inventory::component::StoredComponent;
use crate::text;
use crate::vex::document::{ImportedSbom, StoredVexSource, branch_key};

/// Maximum number of SBOMs of the former audit, missing in this one, that a warning names.
const MOST_LISTED: usize = 5;

/// Stores which SBOMs the audit imports. SBOMs without components do not replace an inventory that
/// has some. Returns the next stage of the import.
pub(super) fn prepare(
    ctx: &JobCtx,
    audit: &AuditStarted,
    tally: &mut ImportCounts,
    mut selection: ImportSelection,
) -> Result<ImportStage, JobError> {
    if let Some(head) = &audit.head(ctx)? {
        tally.is_reported |= head.is_scanned;
        keep_inventory(ctx, audit, tally, &mut selection, head)?;
        note_missing(ctx, audit, tally, &selection, head)?;
    }
    let mut known = BTreeSet::new();
    for chosen in &selection.sboms {
        // The same content may occur under two filenames.
        if known.insert(&audit.inputs[chosen.at].content_sha256) {
            note(ctx, audit, chosen, selection.sboms.len() == 1)?;
        }
    }
    forget_statements(ctx, audit, &selection)?;
    let states = |chosen: &&ChosenInput| chosen.details.statements > 0;
    let sboms = selection.sboms.iter().filter(states);
    Ok(ImportStage::Statements {
        statements: selection.vex.iter().chain(sboms).map(|chosen| chosen.at).collect(),
        inputs: selection.sboms.iter().map(|chosen| chosen.at).collect(),
    })
}

/// If no selected SBOM has components but the branch's inventory does, removes the SBOMs from the
/// selection and warns.
fn keep_inventory(
    ctx: &JobCtx,
    audit: &AuditStarted,
    tally: &mut ImportCounts,
    selection: &mut ImportSelection,
    head: &BranchInventoryHead,
) -> Result<(), JobError> {
    if selection.sboms.is_empty() || selection.sboms.iter().any(|chosen| chosen.components > 0) {
        return Ok(());
    }
    let latest = ctx.documents::<StoredComponent>().query().equals("latest", true);
    if latest.equals("audit_id", head.audit_id).count_up_to(1)? == 0 {
        return Ok(());
    }
    for chosen in selection.sboms.drain(..) {
        tally.warn(format!(
            "{} has no components, so it does not replace the inventory of audit {}.",
            audit.inputs[chosen.at].named(),
            head.audit_id
        ));
    }
    Ok(())
}

/// Warns about SBOMs of the former audit that this audit lacks, because it has none of their
/// subjects.
fn note_missing(
    ctx: &JobCtx,
    audit: &AuditStarted,
    tally: &mut ImportCounts,
    selection: &ImportSelection,
    head: &BranchInventoryHead,
) -> Result<(), JobError> {
    let is_later = (head.started_at, head.audit_id) < (audit.started_at, audit.audit_id);
    if selection.sboms.is_empty() || !is_later {
        return Ok(());
    }
    let before = ctx.documents::<ImportedSbom>().query().equals("audit_id", head.audit_id);
    let streams: BTreeSet<&String> = selection.sboms.iter().map(|chosen| &chosen.stream).collect();
    let mut missing = Vec::new();
    for sbom in before.ascending("audit_id").limit(500).all() {
        let sbom = sbom?.value;
        if sbom.components > 0 && !streams.contains(&sbom.stream) {
            let components = text::counted(sbom.components, "component");
            missing.push(format!("{} ({components})", sbom.filename));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let listed = text::listed(missing.iter(), MOST_LISTED);
    let text = format!(
        "The previous audit, {}, also had components of {listed}. This audit has no SBOM of them, \
        so they are no longer listed.",
        head.audit_id
    );
    for chosen in &selection.sboms {
        tally.limit(&audit.inputs[chosen.at], text.clone());
    }
    tally.warn(text);
    Ok(())
}

fn note(
    ctx: &JobCtx,
    audit: &AuditStarted,
    chosen: &ChosenInput,
    is_only: bool,
) -> Result<(), JobError> {
    let input = &audit.inputs[chosen.at];
    let serial = chosen.details.serial;
    let sbom = ImportedSbom {
        audit_id: audit.audit_id,
        repository_id: audit.repository_id,
        branch_ref: audit.branch_ref.clone(),
        artifact_sha256: input.content_sha256.clone(),
        filename: input.filename.clone(),
        ready_at: input.ready_at,
        serial: serial.map(|(serial, _)| serial.to_string()).unwrap_or_default(),
        version: serial.map_or(1, |(_, version)| version),
        subject: chosen.details.subject.clone(),
        stream: chosen.stream.clone(),
        components: chosen.components,
        is_only,
    };
    let id = ImportedSbom::id(audit.audit_id, &input.content_sha256);
    match ctx.documents::<ImportedSbom>().find(&id)? {
        Some(_) => Ok(()),
        None => Ok(ctx.documents().create(id, &sbom)?),
    }
}

/// Deletes VEX statements from SBOMs that this audit replaces: of subjects whose new SBOM has no
/// statements, and of SBOMs that the branch no longer has.
fn forget_statements(
    ctx: &JobCtx,
    audit: &AuditStarted,
    selection: &ImportSelection,
) -> Result<(), JobError> {
    if selection.sboms.is_empty() {
        return Ok(());
    }
    let stating = selection.sboms.iter().filter(|chosen| chosen.details.statements > 0);
    let stating: BTreeSet<&String> = stating.map(|chosen| &chosen.stream).collect();
    let key = branch_key(audit.repository_id, audit.branch_ref.as_deref());
    let sources = ctx.documents::<StoredVexSource>().query().equals("branch_key", key);
    for source in sources.ascending("branch_key").limit(500).all() {
        let source = source?;
        let is_newer = source.origin.stated_at > audit.started_at;
        if source.is_sbom && !is_newer && !stating.contains(&source.origin.stream) {
            super::statements::remove(ctx, &source)?;
        }
    }
    Ok(())
}
