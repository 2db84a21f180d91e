//! Lists all advisories of a dependency. The list of dependencies returns only the most severe
//! ones.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use super::LongCursorPaging;
use super::component::StoredComponent;
use super::matches::StoredMatch;
use crate::matching::AdvisoryMatch;
use crate::text::advisory_key;

/// Text for the OpenAPI document: what the list of a dependency's advisories contains.
pub(crate) const DESCRIPTION: &str = "\
All advisories that affect a dependency, ordered by id; `component_id` is the dependency's `id` \
in the list of dependencies. Advisories that are aliases of each other are one item. \
`/advisories/{advisory_id}` has the record of an advisory that is known here.";

/// Maximum number of queries for one page of a dependency's advisories. All rows of a query may be
/// further names of advisories that were listed before.
const QUESTIONS: usize = 40;

pub(crate) fn list(
    ctx: &Ctx,
    Path(component_id): Path<Uuid>,
    paging: LongCursorPaging,
) -> Result<Page<AdvisoryMatch>> {
    let component = ctx.documents::<StoredComponent>().get(component_id)?;
    let own = own(&component);
    let limit = paging.limit as usize;
    let (mut items, mut next_cursor) = (Vec::new(), paging.cursor);
    for _ in 0..QUESTIONS {
        let page = rows(ctx, &component.id, next_cursor, limit - items.len())?;
        next_cursor = page.next_cursor;
        items.extend(page.items.into_iter().filter_map(|row| {
            let own = own.get(&row.advisory_key).map(|entry| (*entry).clone());
            own.or(row.value.vulnerability.map(|found| found.entry))
        }));
        if items.len() >= limit || next_cursor.is_none() {
            break;
        }
    }
    Ok(Page { items, next_cursor })
}

/// Returns a page of the component's matches, ordered by advisory name.
fn rows(
    scope: &Scope,
    component_id: &str,
    cursor: Option<String>,
    limit: usize,
) -> Result<Page<Stored<StoredMatch>>, DocumentError> {
    let matches = scope.documents::<StoredMatch>().query().equals("component_id", component_id);
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    matches.ascending("advisory_key").cursor(cursor).limit(limit).page()
}

/// Returns the advisories stored in the component, by key; none if it stores only some. Matches
/// with other keys are further names of these advisories.
fn own(component: &StoredComponent) -> BTreeMap<String, &AdvisoryMatch> {
    if component.advisory_count.is_some() {
        return BTreeMap::new();
    }
    let advisories = component.advisories.iter();
    advisories.map(|entry| (advisory_key(&entry.advisory_id), entry)).collect()
}
