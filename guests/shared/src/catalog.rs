//! Documents of the area `catalog`: repositories, services and groups.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::DocumentError;
use area_sdk::prelude::*;

/// Maximum number of names in one database query.
const NAMES: usize = 500;

/// Maximum size of a name in a database query, in bytes. No document has a longer one, and a query
/// has at most 1 MiB of text.
const MAX_NAME_BYTES: usize = 800;

/// Returns the documents that have one of these names.
///
/// # Errors
/// When the call's limits are used up.
pub fn named<T: Document>(
    scope: &Scope,
    names: &BTreeSet<&str>,
) -> Result<Vec<Stored<T>>, DocumentError> {
    let names: Vec<&str> =
        names.iter().copied().filter(|name| name.len() <= MAX_NAME_BYTES).collect();
    let mut found = Vec::new();
    for names in names.chunks(NAMES) {
        let query = scope.documents::<T>().query().one_of("name", names.iter().copied());
        found.extend(query.limit(1000).list()?);
    }
    Ok(found)
}

/// Returns the documents that have one of these names or ids, by id and by name.
///
/// # Errors
/// When the call's limits are used up.
pub fn referred<T: Document>(
    scope: &Scope,
    references: &BTreeSet<&str>,
    name: fn(&T) -> &String,
) -> Result<BTreeMap<String, Stored<T>>, DocumentError> {
    let ids = references.iter().filter_map(|text| text.parse::<Uuid>().ok());
    let by_id = scope.documents::<T>().get_many(ids)?.into_iter();
    let by_id = by_id.map(|found| (found.id.clone(), found));
    let by_name = named::<T>(scope, references)?.into_iter();
    let by_name = by_name.map(|found| (name(&found).clone(), found));
    Ok(by_id.chain(by_name).collect())
}

/// Returns what a reference in evidence names, from a map by name and id. RFC 9562 allows upper
/// case in an id.
#[must_use]
pub fn resolve<'a, T>(known: &'a BTreeMap<String, T>, reference: &str) -> Option<&'a T> {
    let by_id = || known.get(&reference.parse::<Uuid>().ok()?.to_string());
    known.get(reference).or_else(by_id)
}

/// A repository of the catalog, as other areas read it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Repository {
    /// Name of the repository, unique in the workspace.
    pub name: String,
    /// Hosting service as a lower-case word: `github`, `gitlab`, `git`.
    pub provider: String,
    /// Name of the default branch; `None` in documents of former versions.
    pub default_branch: Option<String>,
    /// Whether the repository is archived. Archived repositories stay in the catalog and are not
    /// audited.
    pub archived: bool,
}

document!(Repository, "catalog.repositories");

/// A service of the catalog, built from repositories, as other areas read it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Service {
    /// Name of the service, unique in the workspace.
    pub name: String,
    /// Ids of the repositories from which the service is built.
    pub repository_ids: Vec<Uuid>,
    /// User who owns the service.
    pub owner_id: Option<Uuid>,
    /// Group that owns the service.
    pub group_id: Option<Uuid>,
    /// Deployment environment of the service, for example `production`.
    pub environment: Option<String>,
}

document!(Service, "catalog.services");

/// A group of users of the catalog, as other areas read it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Group")]
pub struct UserGroup {
    /// Name of the group, unique in the workspace.
    pub name: String,
    /// Ids of the users who are members of the group.
    pub member_ids: Vec<Uuid>,
    /// Names of the group in other systems: `@organisation/team`, `@user`, e-mail.
    pub identities: Vec<String>,
    /// Trust zone of the group. Groups of one zone trust each other.
    pub trust_zone: String,
    /// Classification of the data that the group handles.
    pub data_classification: DataClassification,
}

document!(UserGroup, "catalog.groups");

/// Confidentiality of a group's data, least confidential first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DataClassification {
    /// The group's data may be seen by anybody.
    Public,
    /// The group's data are for everybody in the organization.
    #[default]
    Internal,
    /// The group's data are only for people who need them.
    Confidential,
    /// The group's data are regulated, or harmful if disclosed.
    Restricted,
}
