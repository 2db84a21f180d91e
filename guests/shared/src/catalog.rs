//! Documents of the area `catalog`: repositories, services and groups.

use area_sdk::prelude::*;

/// A repository of the workspace.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Repository {
    /// Unique in the workspace.
    pub name: String,
    /// Hosting service as a lower-case word: `github`, `gitlab`, `git`.
    pub provider: String,
    /// `None` in documents of former versions.
    pub default_branch: Option<String>,
    /// Archived repositories stay in the catalog and are not audited.
    pub archived: bool,
}

impl Document for Repository {
    const COLLECTION: &'static str = "catalog.repositories";
}

/// A service, built from repositories.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Service {
    /// Unique in the workspace.
    pub name: String,
    /// Repositories from which it is built.
    pub repository_ids: Vec<Uuid>,
    /// User who owns it.
    pub owner_id: Option<Uuid>,
    /// Group that owns it.
    pub group_id: Option<Uuid>,
    /// Environment, for example `production`.
    pub environment: Option<String>,
}

impl Document for Service {
    const COLLECTION: &'static str = "catalog.services";
}

/// A group of users.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Group {
    /// Unique in the workspace.
    pub name: String,
    /// Users of the workspace.
    pub member_ids: Vec<Uuid>,
    /// Names in other systems: `@organisation/team`, `@user`, e-mail.
    pub identities: Vec<String>,
    /// Trust zone. Groups of one zone trust each other.
    pub trust_zone: String,
    /// Classification of the data that it handles.
    pub data_classification: DataClassification,
}

impl Document for Group {
    const COLLECTION: &'static str = "catalog.groups";
}

/// Confidentiality of a group's data, least confidential first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DataClassification {
    /// Public.
    Public,
    /// For the organization.
    #[default]
    Internal,
    /// For people who need it.
    Confidential,
    /// Regulated, or harmful if disclosed.
    Restricted,
}

impl DataClassification {
    /// Returns the value in documents, for queries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Confidential => "confidential",
            Self::Restricted => "restricted",
        }
    }
}
