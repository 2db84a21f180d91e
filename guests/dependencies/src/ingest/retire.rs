//! After a branch has a new head: marks components and matches of former heads as no longer latest,
//! and deletes those of superseded imports, some pages in each step. Lists follow the head and do
//! not depend on this; it keeps the indexes of latest rows small.

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::AuditStarted;
use super::imports::StoredImport;
use crate::budget::{AdaptiveBatchSize, StepBudget};
use crate::inventory::component::StoredComponent;
use crate::inventory::matches::StoredMatch;

/// Number of stored matches that are marked as no longer latest, or deleted, at a time.
const PAGE: u32 = 1_000;

/// Progress of marking the components and matches of a branch's former heads as no longer latest.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct LatestFlagClearingProgress {
    /// Id of the former head whose components and matches are being marked; `None` before the
    /// first.
    audit_id: Option<Uuid>,
    /// Whether the matches of the former head are being marked. Its components are marked first.
    matches: bool,
    cursor: Option<String>,
}

/// Marks some components and matches of former heads, or deletes some of superseded imports.
/// Returns the progress; `None` if no work is left.
pub(super) fn some(
    ctx: &JobCtx,
    audit: &AuditStarted,
    at: LatestFlagClearingProgress,
) -> Result<Option<LatestFlagClearingProgress>, JobError> {
    let Some(mut head) = audit.head(ctx)? else { return Ok(None) };
    let Some(former) = head.former.first().copied() else { return discard(ctx, audit) };
    // The import of another audit may have done a part of the work meanwhile.
    let goes_on = at.audit_id.is_none_or(|audit_id| audit_id == former);
    let at = LatestFlagClearingProgress {
        audit_id: Some(former),
        ..if goes_on { at } else { LatestFlagClearingProgress::default() }
    };
    let rest = retire(ctx, former, at)?;
    if rest.is_none() {
        head.former.remove(0);
        ctx.documents().replace(&mut head)?;
    }
    Ok(Some(rest.unwrap_or_default()))
}

/// Marks some components, and then matches, of a former head as no longer latest. Returns the
/// progress; `None` after the last match.
fn retire(
    ctx: &JobCtx,
    former: Uuid,
    mut at: LatestFlagClearingProgress,
) -> Result<Option<LatestFlagClearingProgress>, JobError> {
    let (mut budget, mut size) = (StepBudget::default(), AdaptiveBatchSize::of(ctx));
    while budget.is_ample() {
        at.cursor = match at.matches {
            false => retire_components(ctx, former, at.cursor.take(), (&mut budget, &mut size))?,
            true => retire_matches(ctx, former, at.cursor.take(), &mut budget)?,
        };
        match (&at.cursor, at.matches) {
            (Some(_), _) => {}
            (None, false) => at.matches = true,
            (None, true) => return Ok(None),
        }
    }
    Ok(Some(at))
}

fn retire_components(
    ctx: &JobCtx,
    audit_id: Uuid,
    cursor: Option<String>,
    (budget, size): (&mut StepBudget, &mut AdaptiveBatchSize),
) -> Result<Option<String>, JobError> {
    let latest = ctx.documents::<StoredComponent>().query().equals("latest", true);
    let some = latest.equals("audit_id", audit_id).ascending("name");
    let mut page = some.cursor(cursor).limit(size.limit()).page()?;
    // Subtract the rows twice, because each is read and written.
    size.learn(&page.items, budget);
    size.learn(&page.items, budget);
    page.items.iter_mut().for_each(|component| component.latest = false);
    ctx.documents().replace_all(&page.items)?;
    Ok(page.next_cursor)
}

fn retire_matches(
    ctx: &JobCtx,
    audit_id: Uuid,
    cursor: Option<String>,
    budget: &mut StepBudget,
) -> Result<Option<String>, JobError> {
    let latest = ctx.documents::<StoredMatch>().query().equals("latest", true);
    let some = latest.equals("audit_id", audit_id).ascending("name");
    let mut page = some.cursor(cursor).limit(PAGE).page()?;
    budget.spend(2 * page.items.len());
    page.items.iter_mut().for_each(|found| found.latest = false);
    ctx.documents().replace_all(&page.items)?;
    Ok(page.next_cursor)
}

/// Deletes some matches and components of a superseded import. Returns `None` if no superseded
/// import is left.
fn discard(
    ctx: &JobCtx,
    audit: &AuditStarted,
) -> Result<Option<LatestFlagClearingProgress>, JobError> {
    let Some(import) = audit.superseded(ctx)? else { return Ok(None) };
    let audit_id = import.uuid();
    let (mut budget, mut size) = (StepBudget::default(), AdaptiveBatchSize::of(ctx));
    // No cursor is needed: after the deletion, the next page is the first one.
    while budget.is_ample() {
        let matches = ctx.documents::<StoredMatch>().query().equals("audit_id", audit_id);
        let matches = matches.ascending("name").limit(PAGE).list()?;
        budget.spend(2 * matches.len());
        ctx.documents().delete_all(&matches)?;
        if !matches.is_empty() {
            continue;
        }
        let components = ctx.documents::<StoredComponent>().query().equals("audit_id", audit_id);
        let components = components.ascending("name").limit(size.limit()).list()?;
        budget.spend(components.len());
        size.learn(&components, &mut budget);
        ctx.documents().delete_all(&components)?;
        if components.is_empty() {
            ctx.documents::<StoredImport>().delete(&import)?;
            break;
        }
    }
    Ok(Some(LatestFlagClearingProgress::default()))
}
