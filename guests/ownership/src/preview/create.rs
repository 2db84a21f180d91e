//! Creates a preview of assignments.

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_shared::catalog::Repository;

use super::judge::{MOST_PATHS, judge};
use super::{
    NewPreview, OwnershipPreview, POLICY_VERSION, PreviewSnapshot, PreviewedFinding,
    PreviewedFindingStatus, SHOWN, StoredPreview, StoredPreviewedFinding,
};
use crate::codeowners::Codeowners;
use crate::directory::OwnerDirectory;
use crate::findings;
use crate::source::{SourceAvailability, SourceImportPhase, StoredSource};

/// Text for the OpenAPI document: how previews determine owners.
pub(crate) const DESCRIPTION: &str = "The rules are those imported by the newest audit, or by \
    `audit_id`. The owners of a finding are those of its paths. An owner's name means the one \
    group that has it in `identities`: the owner of the group's service that is built from the \
    repository, otherwise the group's first member; without such a group an e-mail address means \
    its member, and `@name` the one member whose address starts with the name. Case is \
    ignored.\n\n\
    An item is `ready` where the first owner that stands for somebody is to be assigned; \
    `unchanged` where one of the owners is assigned already, or somebody is assigned to what has \
    no owners; `needs_review` in all other cases, with the `reason`. Nothing is assigned before \
    the preview is applied.\n\n\
    A preview has at most 2,000 open findings: those nobody is assigned to first, the riskiest \
    first among them. It has fewer if their paths times the rules are more than 1,000,000. A \
    warning has the number of further findings.";

/// Maximum number of findings in a preview.
const MOST_ITEMS: usize = 2_000;

/// Maximum number of comparisons of a finding's path with a rule in one preview. They take about a
/// second, in which the call may keep others from writing.
const MOST_COMPARISONS: usize = 1_000_000;

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewPreview>,
) -> Result<Created<Versioned<OwnershipPreview>>> {
    if ctx.documents::<Repository>().find(new.repository_id)?.is_none() {
        let message = "The workspace has no such repository.";
        return Err(Problem::validation("/repository_id", message)
            .hint("Register the repository, or name one that is listed."));
    }
    let source = source(ctx, &new)?;
    let items = items(ctx, &new, source.as_ref())?;
    let id = ctx.new_id();
    let preview = preview(ctx, &new, source, items.0, items.1);
    keep(ctx, id, preview)
}

/// Returns the CODEOWNERS file whose rules a new preview applies; `None` if no audit has imported
/// one.
fn source(ctx: &Ctx, new: &NewPreview) -> Result<Option<Stored<StoredSource>>> {
    let Some(audit_id) = new.audit_id else {
        let sources =
            ctx.documents::<StoredSource>().query().equals("repository_id", new.repository_id);
        return Ok(sources.equals("state", name(&SourceImportPhase::Imported)).first()?);
    };
    let source = ctx.documents::<StoredSource>().find(audit_id)?;
    let fits = |source: &Stored<StoredSource>| {
        source.repository_id == new.repository_id && source.state == SourceImportPhase::Imported
    };
    match source.filter(fits) {
        Some(source) => Ok(Some(source)),
        None => Err(Problem::validation(
            "/audit_id",
            "No such audit has imported the repository's ownership.",
        )
        .hint("Name a completed audit of the repository, or omit it for the newest.")),
    }
}

/// Returns the items of a new preview, as many as [`MOST_ITEMS`] and [`MOST_COMPARISONS`] allow,
/// and the total number of open findings.
fn items(
    ctx: &Ctx,
    new: &NewPreview,
    source: Option<&Stored<StoredSource>>,
) -> Result<(Vec<PreviewedFinding>, u64)> {
    let rules = source.map(|source| source.rules(ctx)).transpose();
    let file = rules
        .map_err(|_| Problem::unavailable("The rules cannot be read at the moment."))?
        .flatten();
    let directory = OwnerDirectory::load(ctx, new.repository_id)?;
    let (findings, total) = findings::open(ctx, new.repository_id, MOST_ITEMS)?;
    let rules = file.as_ref().map_or(0, Codeowners::rule_count);
    let fits = fitting(findings.iter().map(|finding| finding.paths.len()), rules);
    let findings = findings.into_iter().take(fits);
    Ok((findings.map(|finding| judge(finding, file.as_ref(), &directory)).collect(), total))
}

/// Returns how many of the first findings can be compared with this number of rules, by the numbers
/// of their paths; at least one.
fn fitting(paths: impl Iterator<Item = usize>, rules: usize) -> usize {
    let mut comparisons = 0;
    let fits = paths.take_while(|paths| {
        comparisons += rules * (*paths).min(MOST_PATHS);
        comparisons <= MOST_COMPARISONS
    });
    fits.count().max(1)
}

/// Returns a new preview whose snapshot has all items.
fn preview(
    ctx: &Ctx,
    new: &NewPreview,
    source: Option<Stored<StoredSource>>,
    items: Vec<PreviewedFinding>,
    total: u64,
) -> StoredPreview {
    let count = |status| items.iter().filter(|item| item.status == status).count();
    let (needs_review, unchanged) =
        (count(PreviewedFindingStatus::NeedsReview), count(PreviewedFindingStatus::Unchanged));
    let audit_id = source.as_ref().map(Stored::uuid);
    let source = source.as_ref();
    let mut warnings = source.map(|source| source.warnings.clone()).unwrap_or_default();
    let beyond = total.saturating_sub(items.len() as u64);
    if beyond > 0 {
        warnings.push(format!("{beyond} more open findings are not in this preview."));
    }
    let snapshot = PreviewSnapshot {
        audit_id,
        branch_ref: source.and_then(|source| source.branch_ref.clone()),
        commit_sha: source.and_then(|source| source.commit_sha.clone()),
        items,
        next_cursor: None,
        policy_version: POLICY_VERSION,
        repository_id: new.repository_id,
        source_path: source.and_then(|source| source.path().map(ToOwned::to_owned)),
        source_sha256: source.and_then(|source| source.sha256().map(ToOwned::to_owned)),
        source_status: source.map_or(SourceAvailability::Missing, |source| source.source_status),
        warnings,
    };
    StoredPreview {
        repository_id: new.repository_id,
        audit_id,
        created_by: ctx.user(),
        preview_sha256: digest(ctx, &snapshot),
        snapshot,
        needs_review,
        unchanged,
        applied_by: None,
        result: None,
    }
}

fn digest(ctx: &Ctx, snapshot: &PreviewSnapshot) -> String {
    let canonical = serde_json_canonicalizer::to_vec(snapshot).expect("a snapshot is plain data");
    ctx.sha256_hex(&canonical)
}

/// Stores the items of a new preview as separate documents, and the preview with its first items.
fn keep(
    ctx: &Ctx,
    id: Uuid,
    mut preview: StoredPreview,
) -> Result<Created<Versioned<OwnershipPreview>>> {
    let items = std::mem::take(&mut preview.snapshot.items).into_iter().enumerate();
    let items: Vec<(Uuid, StoredPreviewedFinding)> = items
        .map(|(position, item)| {
            (ctx.new_id(), StoredPreviewedFinding { preview_id: id, position, item })
        })
        .collect();
    ctx.documents().create_all(items.iter().map(|(id, item)| (id, item)))?;
    if items.len() > SHOWN {
        preview.snapshot.next_cursor = items.get(SHOWN - 1).map(|(id, _)| *id);
    }
    let shown = items.into_iter().take(SHOWN).map(|(_, item)| item.item);
    preview.snapshot.items = shown.collect();
    let stored = ctx.documents().create_stored(id, preview)?;
    Ok(Created(stored.versioned(OwnershipPreview::from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_compared_with_the_rules_up_to_a_bound() {
        assert_eq!(fitting([1; MOST_ITEMS].into_iter(), 500), MOST_ITEMS);
        assert_eq!(fitting([1; MOST_ITEMS].into_iter(), 20_000), 50);
        assert_eq!(fitting([5_000; MOST_ITEMS].into_iter(), 2_000), 5, "at most 100 paths each");
        assert_eq!(fitting([5_000; MOST_ITEMS].into_iter(), 20_000), 1);
        assert_eq!(fitting([5_000; MOST_ITEMS].into_iter(), 0), MOST_ITEMS);
    }
}
