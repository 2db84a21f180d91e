//! Applies a preview: assigns its ready items once, if no finding has changed since the preview was
//! created.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::DocumentError;
use area_sdk::prelude::*;

use super::{
    ApplyResult, OwnershipPreview, PreviewedFinding, StoredPreview, StoredPreviewedFinding,
};
use crate::findings::Finding;

/// Text for the OpenAPI document: how a preview is applied.
pub(crate) const DESCRIPTION: &str = "A preview can be applied once; a second time returns 409 \
    `preview_applied`. If a finding's state or assignee has changed since the preview, or an \
    assignee has left the workspace, nothing is assigned: 409 `findings_changed`. The findings \
    have their new assignee a moment later.";

/// Number of preview items or findings in one page of a database query.
const STEP: u32 = 500;

/// Maximum number of changed findings that the refusal to apply a preview names.
const NAMED: usize = 3;

/// A finding and the user to whom it is to be assigned.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Assignment")]
struct FindingAssignment {
    finding_id: Uuid,
    assignee_id: Uuid,
}

/// Published when a preview was applied. The control room then assigns the findings.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OwnershipApplied {
    preview_id: Uuid,
    repository_id: Uuid,
    applied_by: Uuid,
    assignments: Vec<FindingAssignment>,
}

event!(OwnershipApplied, "ownership.applied");

pub(crate) fn apply(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<OwnershipPreview>> {
    let mut preview = ctx.documents::<StoredPreview>().get(id)?;
    ctx.check_if_match(preview.version)?;
    if preview.result.is_some() {
        return Err(Problem::conflict("preview_applied", "This preview was already applied.")
            .hint("Create a new preview."));
    }
    let ready = ready(ctx, id)?;
    refuse_changes(&changed(ctx, &ready)?)?;
    let assign = |item: &PreviewedFinding| {
        item.assignee_id
            .map(|assignee_id| FindingAssignment { finding_id: item.finding_id, assignee_id })
    };
    let assignments: Vec<FindingAssignment> = ready.iter().filter_map(assign).collect();
    preview.result = Some(ApplyResult {
        applied: assignments.len(),
        applied_at: ctx.now(),
        needs_review: preview.needs_review,
        unchanged: preview.unchanged,
    });
    preview.applied_by = Some(ctx.user());
    ctx.documents().replace(&mut preview)?;
    let (repository_id, applied_by) = (preview.repository_id, ctx.user());
    ctx.publish(OwnershipApplied { preview_id: id, repository_id, applied_by, assignments });
    Ok(preview.versioned(OwnershipPreview::from))
}

/// Returns the items of a preview that assign a finding when the preview is applied.
fn ready(ctx: &Ctx, preview_id: Uuid) -> Result<Vec<PreviewedFinding>, DocumentError> {
    let items = ctx.documents::<StoredPreviewedFinding>().query().equals("preview_id", preview_id);
    let ready = items.equals("status", "ready").limit(STEP).all();
    ready.map(|stored| Ok(stored?.value.item)).collect()
}

/// Returns the ids of findings that changed since the preview, or whose new assignee left the
/// workspace.
fn changed(ctx: &Ctx, ready: &[PreviewedFinding]) -> Result<Vec<Uuid>, DocumentError> {
    let members: BTreeSet<String> = ctx.members().into_iter().map(|person| person.user).collect();
    let mut changed = Vec::new();
    for items in ready.chunks(STEP as usize) {
        let ids = items.iter().map(|item| item.finding_id);
        let found = ctx.documents::<Finding>().get_many(ids)?.into_iter();
        let found: BTreeMap<Uuid, Finding> =
            found.map(|finding| (finding.uuid(), finding.value)).collect();
        let stale = items.iter().filter(|item| {
            let there = item.assignee_id.is_some_and(|id| members.contains(&id.to_string()));
            !there || !found.get(&item.finding_id).is_some_and(|finding| is_as_seen(item, finding))
        });
        changed.extend(stale.map(|item| item.finding_id));
    }
    Ok(changed)
}

fn is_as_seen(item: &PreviewedFinding, finding: &Finding) -> bool {
    finding.open
        && finding.version == item.collaboration_version
        && finding.owner_id == item.current_assignee_id
}

fn refuse_changes(changed: &[Uuid]) -> Result<()> {
    if changed.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = changed.iter().take(NAMED).map(ToString::to_string).collect();
    let detail = format!(
        "{} findings, or their assignees, have changed since the preview was made: {}{}",
        changed.len(),
        named.join(", "),
        if changed.len() > NAMED { " and more." } else { "." }
    );
    Err(Problem::conflict("findings_changed", detail).hint("Create a new preview and apply it."))
}
