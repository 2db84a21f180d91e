//! Reads the groups of the area `catalog`.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::catalog::UserGroup;

/// Returns the groups that have one of these ids or names, by id and by name.
pub(crate) fn referred(
    scope: &Scope,
    references: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Stored<UserGroup>>, DocumentError> {
    let groups = scope.documents::<UserGroup>();
    let ids = references.iter().filter_map(|text| text.parse::<Uuid>().ok());
    let by_id = groups.get_many(ids)?.into_iter().map(|group| (group.id.clone(), group));
    let names = references.iter().copied();
    let by_name = groups.query().one_of("name", names).limit(1000).list()?;
    let by_name = by_name.into_iter().map(|group| (group.name.clone(), group));
    Ok(by_id.chain(by_name).collect())
}
