//! Identity providers: responses, stored form and events.

use std::collections::BTreeMap;

use area_sdk::Scope;
use area_sdk::prelude::*;
use serde_json::{Map, Value};

/// Status of a provider.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProviderStatus {
    /// Not discovered yet.
    Draft,
    /// Discovered; users may sign in with it.
    Active,
    /// Disabled by an admin.
    Disabled,
    /// The discovery failed.
    Error,
}

/// A user's attribute in a token.
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

/// Names of the claims with each attribute.
pub(crate) type ClaimsMapping = BTreeMap<Attribute, String>;

/// A role that a provider's groups can assign. Only owners appoint owners.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MappedRole {
    Viewer,
    Member,
    Admin,
}

/// Roles by group.
pub(crate) type RoleMapping = BTreeMap<String, MappedRole>;

/// An identity provider in responses.
#[derive(Serialize, JsonSchema)]
pub(crate) struct IdentityProvider {
    claims_mapping: ClaimsMapping,
    client_id: String,
    created_at: Timestamp,
    /// Metadata of the provider; null before the first discovery.
    discovery_metadata: Option<Map<String, Value>>,
    domains: Vec<String>,
    id: Uuid,
    issuer: String,
    /// SHA-256 of the canonical form of its keys.
    jwks_sha256: Option<String>,
    /// Time of the last rotation by an admin; null before the first.
    last_rotated_at: Option<Timestamp>,
    name: String,
    role_mapping: RoleMapping,
    status: ProviderStatus,
    updated_at: Timestamp,
    version: u64,
    workspace_id: Uuid,
}

/// A provider with its discovery status.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderDetails {
    #[serde(flatten)]
    provider: IdentityProvider,
    created_by: Uuid,
    has_client_secret: bool,
    /// Time of the last discovery.
    last_discovered_at: Option<Timestamp>,
    /// Error code of the latest discovery; null after a success.
    last_error_code: Option<String>,
}

/// A stored provider. Its client secret is a secret of the host, see [`secret_name`].
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
    /// Number of the current discovery. Results of others are discarded.
    pub(crate) discovery: u32,
    pub(crate) created_by: Uuid,
}

impl Document for StoredProvider {
    const COLLECTION: &'static str = "providers";
}

/// Returns the name of the secret with a provider's client secret.
pub(crate) fn secret_name(provider: Uuid) -> String {
    format!("identity-provider/{provider}")
}

/// Returns the provider for a response.
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

/// Returns the provider with its discovery status.
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

/// Members of all events about a provider.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderEvent {
    provider_id: Uuid,
    name: String,
    issuer: String,
    status: ProviderStatus,
    error_code: Option<String>,
}

impl ProviderEvent {
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

/// Published when a provider was created.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderCreated(pub(crate) ProviderEvent);

impl Event for ProviderCreated {
    const NAME: &'static str = "identity_provider.created";
}

/// Published when a provider was discovered and users may sign in with it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderActivated(pub(crate) ProviderEvent);

impl Event for ProviderActivated {
    const NAME: &'static str = "identity_provider.activated";
}

/// Published when the discovery of a provider failed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderFailed(pub(crate) ProviderEvent);

impl Event for ProviderFailed {
    const NAME: &'static str = "identity_provider.failed";
}

/// Published when an admin rotated a provider.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderRotated(pub(crate) ProviderEvent);

impl Event for ProviderRotated {
    const NAME: &'static str = "identity_provider.rotated";
}

/// Published when a provider was disabled.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderDisabled(pub(crate) ProviderEvent);

impl Event for ProviderDisabled {
    const NAME: &'static str = "identity_provider.disabled";
}

/// Published when a provider was deleted.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderDeleted(pub(crate) ProviderEvent);

impl Event for ProviderDeleted {
    const NAME: &'static str = "identity_provider.deleted";
}
