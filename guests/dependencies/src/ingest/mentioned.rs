//! Adds the ids in `upstream` and `related` of the audit's advisories to its facts. Distributions
//! name the CVE there and not in `aliases`, and predicates name the CVE.

use std::ops::Bound;

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::ImportCounts;
use crate::advisories::document::StoredAdvisory;
use crate::budget::StepBudget;

/// Number of the audit's advisories that are read at a time; some are large.
const PAGE: usize = 20;

/// Adds to the audit's facts the ids in `upstream` and `related` of some of its advisories, of
/// those with an id after `after`. Returns the id after which the next step continues; `None` if no
/// work is left.
pub(super) fn some(
    ctx: &JobCtx,
    tally: &mut ImportCounts,
    mut after: Option<String>,
) -> Result<Option<String>, JobError> {
    let mut budget = StepBudget::default();
    // Without all names the facts have none, so no more are needed.
    while !tally.lacks_advisories && budget.is_ample() {
        let from = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let rest = tally.advisories.range::<String, _>((from, Bound::Unbounded));
        let ids: Vec<String> = rest.take(PAGE).cloned().collect();
        let Some(last) = ids.last() else { return Ok(None) };
        budget.spend(ids.len());
        for advisory in ctx.documents::<StoredAdvisory>().get_many(&ids)? {
            budget.spend_bytes(advisory.bytes());
            tally.add_aliases(&advisory.mention_keys());
        }
        after = Some(last.clone());
    }
    Ok(after.filter(|_| !tally.lacks_advisories))
}
