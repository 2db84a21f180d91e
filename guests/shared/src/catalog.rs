//! Documents of the area `catalog`: repositories, services and groups.

use std::collections::BTreeMap;

use area_sdk::prelude::*;

/// Returns what a reference in evidence names, from a map by name and id. RFC 9562 allows upper
/// case in an id.
#[must_use]
pub fn resolve<'a, T>(known: &'a BTreeMap<String, T>, reference: &str) -> Option<&'a T> {
    let by_id = || known.get(&reference.parse::<Uuid>().ok()?.to_string());
    known.get(reference).or_else(by_id)
}

/// A repository of the workspace.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Repository {
    /// Name, unique in the workspace.
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

/// A service, built from repositories.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Service {
    /// Name, unique in the workspace.
    pub name: String,
    /// Ids of the repositories from which the service is built.
    pub repository_ids: Vec<Uuid>,
    /// User who owns the service.
    pub owner_id: Option<Uuid>,
    /// Group that owns the service.
    pub group_id: Option<Uuid>,
    /// Deployment environment, for example `production`.
    pub environment: Option<String>,
}

document!(Service, "catalog.services");

/// A group of users.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Group")]
pub struct UserGroup {
    /// Name, unique in the workspace.
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
    /// Data that anybody may see.
    Public,
    /// Data for everybody in the organization.
    #[default]
    Internal,
    /// Data only for people who need it.
    Confidential,
    /// Data that is regulated, or harmful if disclosed.
    Restricted,
}
