//! Identity providers: responses, stored form and events.

use std::collections::BTreeMap;

use area_sdk::Scope;
use area_sdk::prelude::*;
use serde_json::{Map, Value};

/// Status of an identity provider.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProviderStatus {
    /// The provider was created or enabled, and its metadata have not been read since.
    Draft,
    /// The provider's metadata are valid; users may sign in with the provider.
    Active,
    /// An admin disabled the provider.
    Disabled,
    /// Reading the provider's metadata or keys failed.
    Error,
}

/// An attribute of a user that a token contains.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Attribute")]
pub(crate) enum UserAttribute {
    Subject,
    Email,
    Name,
    Groups,
}

/// Name of the token's claim for each attribute of a user.
pub(crate) type ClaimsMapping = BTreeMap<UserAttribute, String>;

/// A role that the groups in a token can assign. It cannot be owner, because only owners appoint
/// owners.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MappedRole {
    Viewer,
    Member,
    Admin,
}

/// Role that each group in a token assigns.
pub(crate) type RolesByTokenGroup = BTreeMap<String, MappedRole>;

/// An identity provider (OpenID Connect).
#[derive(Serialize, JsonSchema)]
pub(crate) struct IdentityProvider {
    claims_mapping: ClaimsMapping,
    client_id: String,
    created_at: Timestamp,
    /// Metadata of the provider (OpenID Connect Discovery 1.0); null before the first discovery.
    discovery_metadata: Option<Map<String, Value>>,
    domains: Vec<String>,
    id: Uuid,
    issuer: String,
    /// Lower-case hex SHA-256 of the provider's keys (JWK Set) in canonical form (RFC 8785); null
    /// before the first discovery.
    jwks_sha256: Option<String>,
    /// Time at which an admin last rotated the provider's secret or keys; null if never.
    last_rotated_at: Option<Timestamp>,
    name: String,
    role_mapping: RolesByTokenGroup,
    status: ProviderStatus,
    updated_at: Timestamp,
    version: u64,
    workspace_id: Uuid,
}

/// An identity provider with the result of its latest discovery.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProviderDetails")]
pub(crate) struct IdentityProviderDetails {
    #[serde(flatten)]
    provider: IdentityProvider,
    created_by: Uuid,
    has_client_secret: bool,
    /// Time of the latest successful discovery.
    last_discovered_at: Option<Timestamp>,
    /// Error code of the latest discovery; null after a success.
    last_error_code: Option<String>,
}

/// A stored identity provider. Its client secret is a secret of the host, see [`secret_name`].
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
    pub(crate) role_mapping: RolesByTokenGroup,
    pub(crate) status: ProviderStatus,
    /// Number of the current discovery. The results of earlier discoveries are discarded.
    pub(crate) discovery: u32,
    pub(crate) created_by: Uuid,
}

document!(StoredProvider, "providers");

/// Returns the name of the host's secret with a provider's client secret.
pub(crate) fn secret_name(provider: Uuid) -> String {
    format!("identity-provider/{provider}")
}

/// Converts a stored identity provider for a response.
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

/// Converts a stored identity provider for a response that includes its discovery status.
pub(crate) fn details(
    scope: &Scope,
    mut stored: Stored<StoredProvider>,
) -> Versioned<IdentityProviderDetails> {
    let version = stored.version;
    let details = IdentityProviderDetails {
        created_by: stored.created_by,
        has_client_secret: stored.has_client_secret,
        last_discovered_at: stored.last_discovered_at,
        last_error_code: stored.last_error_code.take(),
        provider: view(scope, stored),
    };
    Versioned(details, version)
}

/// Data of all events about an identity provider.
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

/// Published when an identity provider was created.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderCreated(pub(crate) ProviderEvent);

event!(ProviderCreated, "identity_provider.created");

/// Published when the discovery of an identity provider succeeded; users may sign in with the
/// provider.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderActivated(pub(crate) ProviderEvent);

event!(ProviderActivated, "identity_provider.activated");

/// Published when the discovery of an identity provider failed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProviderFailed")]
pub(crate) struct ProviderDiscoveryFailed(pub(crate) ProviderEvent);

event!(ProviderDiscoveryFailed, "identity_provider.failed");

/// Published when an admin rotated the secret or keys of an identity provider.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderRotated(pub(crate) ProviderEvent);

event!(ProviderRotated, "identity_provider.rotated");

/// Published when an identity provider was disabled.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderDisabled(pub(crate) ProviderEvent);

event!(ProviderDisabled, "identity_provider.disabled");

/// Published when an identity provider was deleted.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProviderDeleted(pub(crate) ProviderEvent);

event!(ProviderDeleted, "identity_provider.deleted");
