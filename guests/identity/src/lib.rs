//! Identity providers (operation 6): OpenID Connect providers with which users of a workspace sign
//! in. A provider becomes active after its discovery confirmed exactly the issuer that an admin
//! named.

mod discovery;
mod domains;
mod metadata;
mod provider;
mod providers;

use area_sdk::prelude::*;

use discovery::DiscoverProviderJob;
use domains::DomainAssignment;
use provider::{
    ProviderActivated, ProviderCreated, ProviderDeleted, ProviderDisabled, ProviderDiscoveryFailed,
    ProviderRotated, StoredProvider,
};

/// Declares the area `identity`: its operations, collections, events and jobs.
pub fn area() -> Area {
    let area = Area::new("identity", env!("CARGO_PKG_VERSION"))
        .summary("OpenID Connect providers of a workspace")
        .uses(&[Capability::Secrets, Capability::Crypto, Capability::Egress])
        .event::<ProviderCreated>("An identity provider was created")
        .event::<ProviderActivated>("An identity provider was discovered and can be used")
        .event::<ProviderDiscoveryFailed>("An identity provider could not be discovered")
        .event::<ProviderRotated>("An identity provider was rotated")
        .event::<ProviderDisabled>("An identity provider was disabled")
        .event::<ProviderDeleted>("An identity provider was deleted")
        .job::<DiscoverProviderJob>(
            Lane::Maintenance,
            5,
            discovery::JOB_TIMEOUT_MS,
            discovery::run,
        );
    state_routes(provider_routes(collections(area)))
}

fn collections(area: Area) -> Area {
    area.collections([
        Collection::of::<StoredProvider>()
            .summary("OpenID Connect providers, without their client secrets")
            .unique(&["name"])
            .index(&["status"])
            .readable_by(&["*"]),
        Collection::of::<DomainAssignment>()
            .summary("Providers of e-mail domains; the id is the domain")
            .readable_by(&["*"]),
    ])
}

/// Text for the OpenAPI document: rules of identity providers.
const RULES: &str = "A job discovers the provider (OpenID Connect Discovery 1.0): it reads \
    `{issuer}/.well-known/openid-configuration`, in which `issuer` must be the one given, byte by \
    byte, and the keys at `jwks_uri`. Then the provider is `active`, with `discovery_metadata` \
    and `jwks_sha256`, the SHA-256 of the keys' canonical form (RFC 8785). Before that it is \
    `draft`, or `error` if the discovery failed; `last_error_code` has the reason. Redirects are \
    not followed.\n\n\
    `issuer` and every address in the metadata are https and public. `domains` are stored in \
    lower case; each belongs to one provider of the workspace. `client_secret` is encrypted when \
    it is received and never returned. `claims_mapping` names the token's claims for `subject`, \
    `email`, `name` and `groups`; `role_mapping` gives groups the roles `viewer`, `member` or \
    `admin`.\n\n\
    Codes of `last_error_code`: `issuer_mismatch`, `discovery_invalid`, `endpoint_refused`, \
    `code_flow_unsupported`, `signing_unsupported` (no asymmetric algorithm), `jwks_invalid` (no \
    keys, or such as are not public), `not_found`, `redirected`, `request_rejected`, \
    `provider_unavailable`, `address_refused`, `answer_too_large`, `timeout`, `unresolved`, \
    `unreachable`; after a temporary failure the provider is called up to three times.";

const PROVIDERS: &str = "/v1/workspaces/{workspace_id}/identity/providers";
const PROVIDER: &str = "/v1/workspaces/{workspace_id}/identity/providers/{provider_id}";

fn provider_routes(area: Area) -> Area {
    area.routes([
        get("list_identity_providers", PROVIDERS)
            .summary("List the workspace's identity providers by name")
            .description("Returns all providers, at most 50, without secrets.")
            .in_contract()
            .example(include_str!("../examples/list_identity_providers.json"))
            .handler(providers::list),
        post("create_identity_provider", PROVIDERS)
            .summary("Create an identity provider")
            .description(RULES)
            .role(Role::Admin)
            .problems(&["name_taken", "domain_taken", "too_many_identity_providers"])
            .example(include_str!("../examples/create_identity_provider.json"))
            .handler(providers::create),
        get("get_identity_provider", PROVIDER)
            .summary("Read an identity provider and its discovery status")
            .description(
                "With the discovered metadata and the digest of the signing keys. The `ETag` of \
                 the response is the version that a change names in `If-Match`.",
            )
            .example(include_str!("../examples/get_identity_provider.json"))
            .handler(providers::show),
        patch("update_identity_provider", PROVIDER)
            .summary("Change an identity provider")
            .description(
                "Absent members keep their values. The issuer cannot be changed: create another \
                provider.",
            )
            .role(Role::Admin)
            .problems(&["name_taken", "domain_taken"])
            .example(include_str!("../examples/update_identity_provider.json"))
            .handler(providers::update),
        delete("delete_identity_provider", PROVIDER)
            .summary("Delete an identity provider and its secret")
            .description("The stored client secret is deleted with it.")
            .role(Role::Admin)
            .handler(providers::remove),
    ])
}

fn state_routes(area: Area) -> Area {
    area.routes([
        post(
            "rotate_identity_provider",
            "/v1/workspaces/{workspace_id}/identity/providers/{provider_id}/rotate",
        )
        .summary("Rotate the client secret and read the provider's keys again")
        .description("`last_rotated_at` is set at once; the keys are read by a job.")
        .role(Role::Admin)
        .example(include_str!("../examples/rotate_identity_provider.json"))
        .if_match()
        .handler(providers::rotate),
        post(
            "disable_identity_provider",
            "/v1/workspaces/{workspace_id}/identity/providers/{provider_id}/disable",
        )
        .summary("Disable an identity provider")
        .description(
            "The provider and its secret are kept. Enabling it again repeats the discovery.",
        )
        .role(Role::Admin)
        .example(include_str!("../examples/disable_identity_provider.json"))
        .if_match()
        .handler(providers::disable),
        post(
            "enable_identity_provider",
            "/v1/workspaces/{workspace_id}/identity/providers/{provider_id}/enable",
        )
        .summary("Enable an identity provider, or retry its discovery")
        .description("It is `draft` until it is discovered again.")
        .role(Role::Admin)
        .example(include_str!("../examples/enable_identity_provider.json"))
        .if_match()
        .handler(providers::enable),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
