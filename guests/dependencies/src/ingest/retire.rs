//! Marking the components and matches of former audits as no longer latest,
//! some pages a step.

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::Audit;
use super::claim::Head;
use crate::inventory::component::StoredComponent;
use crate::inventory::matches::StoredMatch;

/// Documents of one page.
const PAGE: u32 = 1_000;
/// Pages of one step: each document is read and written, and a call has
/// 10,000 of both.
const PAGES: usize = 3;

/// How far the work is.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Retiring {
    /// The matches' turn, after the components'.
    matches: bool,
    cursor: Option<String>,
}

/// Does some of it; nothing where none is left.
pub(super) fn some(
    ctx: &JobCtx,
    audit: &Audit,
    mut at: Retiring,
) -> Result<Option<Retiring>, JobError> {
    let Some(mut head) = ctx.documents::<Head>().find(audit.head_id(ctx))? else { return Ok(None) };
    // A later audit retires this one's too.
    let former = head.former.first().copied().filter(|_| head.audit_id == audit.audit_id);
    let Some(former) = former else { return Ok(None) };
    for _ in 0..PAGES {
        let cursor = at.cursor.take();
        at.cursor = if at.matches {
            matches(ctx, former, cursor)?
        } else {
            components(ctx, former, cursor)?
        };
        match (&at.cursor, at.matches) {
            (Some(_), _) => {}
            (None, false) => at.matches = true,
            (None, true) => {
                head.former.remove(0);
                ctx.documents().replace(&mut head)?;
                return Ok(Some(Retiring::default()));
            }
        }
    }
    Ok(Some(at))
}

fn components(
    ctx: &JobCtx,
    audit_id: Uuid,
    cursor: Option<String>,
) -> Result<Option<String>, JobError> {
    let latest = ctx.documents::<StoredComponent>().query().equals("latest", true);
    let some = latest.equals("audit_id", audit_id).ascending("name");
    let mut page = some.cursor(cursor).limit(PAGE).page()?;
    page.items.iter_mut().for_each(|component| component.latest = false);
    ctx.documents().replace_all(&page.items)?;
    Ok(page.next_cursor)
}

fn matches(
    ctx: &JobCtx,
    audit_id: Uuid,
    cursor: Option<String>,
) -> Result<Option<String>, JobError> {
    let latest = ctx.documents::<StoredMatch>().query().equals("latest", true);
    let some = latest.equals("audit_id", audit_id).ascending("name");
    let mut page = some.cursor(cursor).limit(PAGE).page()?;
    page.items.iter_mut().for_each(|found| found.latest = false);
    ctx.documents().replace_all(&page.items)?;
    Ok(page.next_cursor)
}
