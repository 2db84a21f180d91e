//! The catalog's groups, as far as dependencies need them.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

/// How confidential the data is that a group handles, least first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DataClassification {
    /// Anybody may see it.
    Public,
    /// For the organisation.
    Internal,
    /// For those who need it.
    Confidential,
    /// Regulated, or harmful in other hands.
    Restricted,
}

/// What is needed of a group.
#[derive(Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) trust_zone: String,
    pub(crate) data_classification: DataClassification,
}

impl Document for Group {
    const COLLECTION: &'static str = "catalog.groups";
}

/// Groups by the references that evidence uses: id and name.
pub(crate) fn referred(
    scope: &Scope,
    references: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Stored<Group>>, DocumentError> {
    let groups = scope.documents::<Group>();
    let ids = references.iter().filter_map(|text| text.parse::<Uuid>().ok());
    let by_id = groups.get_many(ids)?.into_iter().map(|group| (group.id.clone(), group));
    let names = references.iter().copied();
    let by_name = groups.query().one_of("name", names).limit(1000).list()?;
    let by_name = by_name.into_iter().map(|group| (group.name.clone(), group));
    Ok(by_id.chain(by_name).collect())
}
