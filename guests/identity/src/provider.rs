//! A provider: as the contract shows it, as it is kept, and what is told of it.

use std::collections::BTreeMap;

use area_sdk::Scope;
use area_sdk::prelude::*;
use serde_json::{Map, Value};

/// Where a provider stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProviderStatus {
    /// Not discovered yet.
    Draft,
    /// Discovered; people may sign in with it.
    Active,
    /// Switched off by an admin.
    Disabled,
    /// Could not be discovered.
    Error,
}

/// What of a person a token's claims tell.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Attribute {
    Subject,
    Email,
    Name,
    Groups,
}

/// Which claim tells what.
pub(crate) type ClaimsMapping = BTreeMap<Attribute, String>;

/// A role that a provider's groups can give; owners are made by owners.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MappedRole {
    Viewer,
    Member,
    Admin,
}

/// Which group has which role.
pub(crate) type RoleMapping = BTreeMap<String, MappedRole>;

/// A provider as the contract shows it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct IdentityProvider {
    claims_mapping: ClaimsMapping,
    client_id: String,
    created_at: Timestamp,
    /// What the provider says of itself; null until it was discovered.
    discovery_metadata: Option<Map<String, Value>>,
    domains: Vec<String>,
    id: Uuid,
    issuer: String,
    /// SHA-256 of the canonical form of its keys.
    jwks_sha256: Option<String>,
    /// When an admin had it rotated; null before.
    last_rotated_at: Option<Timestamp>,
    name: String,
    role_mapping: RoleMapping,
    status: ProviderStatus,
    updated_at: Timestamp,
    version: u64,
    workspace_id: Uuid,
}

/// A provider with how it is doing.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderDetails {
    #[serde(flatten)]
    provider: IdentityProvider,
    created_by: Uuid,
    has_client_secret: bool,
    /// When it was discovered last.
    last_discovered_at: Option<Timestamp>,
    /// Why the latest discovery failed; null after one that succeeded.
    last_error_code: Option<String>,
}

/// A provider as it is kept; its client secret is the host's secret of
/// [`secret_name`].
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredProvider {
    pub(crate) claims_mapping: ClaimsMapping,
    pub(crate) client_id: String,
    pub(crate) discovery_metadata: Option<Map<String, Value>>,
    pub(crate) domains: Vec<String>,
    pub(crate) has_client_secret: bool,
    pub(crate) issuer: String,
    pub(crate) jwks_sha256: Option<String>,
    pub(crate) last_discovered_at: Option<Timestamp>,
    pub(crate) last_error_code: Option<String>,
    pub(crate) last_rotated_at: Option<Timestamp>,
    pub(crate) name: String,
    pub(crate) role_mapping: RoleMapping,
    pub(crate) status: ProviderStatus,
    /// Which discovery is under way: one of another number does not count.
    pub(crate) discovery: u32,
    pub(crate) created_by: Uuid,
}

impl Document for StoredProvider {
    const COLLECTION: &'static str = "providers";
}

/// The name of the secret that holds a provider's client secret.
pub(crate) fn secret_name(provider: Uuid) -> String {
    format!("identity-provider/{provider}")
}

/// The provider as the contract shows it.
pub(crate) fn view(scope: &Scope, stored: Stored<StoredProvider>) -> IdentityProvider {
    let (id, version) = (stored.uuid(), stored.version);
    let (created_at, updated_at, provider) = (stored.created_at, stored.updated_at, stored.value);
    IdentityProvider {
        claims_mapping: provider.claims_mapping,
        client_id: provider.client_id,
        created_at,
        discovery_metadata: provider.discovery_metadata,
        domains: provider.domains,
        id,
        issuer: provider.issuer,
        jwks_sha256: provider.jwks_sha256,
        last_rotated_at: provider.last_rotated_at,
        name: provider.name,
        role_mapping: provider.role_mapping,
        status: provider.status,
        updated_at,
        version,
        workspace_id: scope.workspace_id(),
    }
}

/// The provider with how it is doing.
pub(crate) fn details(
    scope: &Scope,
    mut stored: Stored<StoredProvider>,
) -> Versioned<ProviderDetails> {
    let version = stored.version;
    let details = ProviderDetails {
        created_by: stored.created_by,
        has_client_secret: stored.has_client_secret,
        last_discovered_at: stored.last_discovered_at,
        last_error_code: stored.last_error_code.take(),
        provider: view(scope, stored),
    };
    Versioned(details, version)
}

/// What every event about a provider says.
#[derive(Serialize, JsonSchema)]
pub(crate) struct About {
    provider_id: Uuid,
    name: String,
    issuer: String,
    status: ProviderStatus,
    error_code: Option<String>,
}

impl About {
    pub(crate) fn of(stored: &Stored<StoredProvider>) -> Self {
        Self {
            provider_id: stored.uuid(),
            name: stored.name.clone(),
            issuer: stored.issuer.clone(),
            status: stored.status,
            error_code: stored.last_error_code.clone(),
        }
    }
}

/// Told when a provider was set up.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderCreated(pub(crate) About);

impl Event for ProviderCreated {
    const NAME: &'static str = "identity_provider.created";
}

/// Told when a provider was discovered and people may sign in with it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderActivated(pub(crate) About);

impl Event for ProviderActivated {
    const NAME: &'static str = "identity_provider.activated";
}

/// Told when a provider could not be discovered.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderFailed(pub(crate) About);

impl Event for ProviderFailed {
    const NAME: &'static str = "identity_provider.failed";
}

/// Told when an admin had a provider rotated.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderRotated(pub(crate) About);

impl Event for ProviderRotated {
    const NAME: &'static str = "identity_provider.rotated";
}

/// Told when a provider was switched off.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderDisabled(pub(crate) About);

impl Event for ProviderDisabled {
    const NAME: &'static str = "identity_provider.disabled";
}

/// Told when a provider was deleted.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderDeleted(pub(crate) About);

impl Event for ProviderDeleted {
    const NAME: &'static str = "identity_provider.deleted";
}
