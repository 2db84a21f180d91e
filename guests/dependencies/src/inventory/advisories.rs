//! All advisories of one component, of which the list of components shows only
//! the most severe.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use super::component::StoredComponent;
use super::matches::StoredMatch;
use crate::matching::AdvisoryMatch;
use crate::text::advisory_key;

/// The rules, for the operation's documentation.
pub(crate) const DESCRIPTION: &str = "\
All advisories that affect a dependency, ordered by id; `component_id` is the dependency's `id` \
in the list of dependencies. Advisories that are aliases of each other are one item. \
`/advisories/{advisory_id}` has the record of an advisory that is known here.";

/// Questions for one page, whose rows may all be other names of advisories.
const QUESTIONS: usize = 40;

/// Which component, and which page.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Parameters {
    /// The dependency's id.
    component_id: Uuid,
    /// `next_cursor` of the page before.
    #[schemars(length(max = 8000))]
    cursor: Option<String>,
    /// How many a page has at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

fn default_limit() -> u32 {
    50
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(parameters): Params<Parameters>,
) -> Result<Page<AdvisoryMatch>> {
    let component = ctx.documents::<StoredComponent>().get(parameters.component_id)?;
    let own = own(&component);
    let limit = parameters.limit as usize;
    let (mut items, mut next_cursor) = (Vec::new(), parameters.cursor);
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

/// A page of the component's matches, in the order of their names.
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

/// The advisories of a component that has all of them itself, by their keys.
/// Its matches under other keys are other names of these.
fn own(component: &StoredComponent) -> BTreeMap<String, &AdvisoryMatch> {
    if component.advisory_count.is_some() {
        return BTreeMap::new();
    }
    let advisories = component.advisories.iter();
    advisories.map(|entry| (advisory_key(&entry.advisory_id), entry)).collect()
}
