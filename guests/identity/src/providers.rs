//! Operations on identity providers.

use area_sdk::DocumentError;
use area_sdk::prelude::*;

use crate::discovery;
use crate::domains;
use crate::provider::{
    ClaimsMapping, IdentityProvider, IdentityProviderDetails, ProviderCreated, ProviderDeleted,
    ProviderDisabled, ProviderEvent, ProviderRotated, ProviderStatus, RolesByTokenGroup,
    StoredProvider, UserAttribute, details, secret_name, view,
};

/// Maximum number of identity providers of a workspace, because operation 6 lists all of them.
const MOST_PROVIDERS: u32 = 50;

/// Maximum number of groups in a role mapping.
const MOST_GROUPS: usize = 200;

/// Maximum length of the name of a provider, claim or group, in characters.
const MOST_CHARACTERS: usize = 200;

/// A request to create an identity provider.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewIdentityProvider {
    #[schemars(length(min = 1, max = 200))]
    name: String,
    /// Issuer, an https URL, exactly as in the provider's metadata.
    #[schemars(length(min = 1, max = 1000), extend("format" = "uri"))]
    issuer: String,
    #[schemars(length(min = 1, max = 500))]
    client_id: String,
    /// Client secret; absent for a public client.
    #[schemars(length(min = 1, max = 1000), extend("writeOnly" = true))]
    client_secret: Option<String>,
    /// E-mail domains whose users sign in with this provider.
    #[schemars(length(min = 1, max = 50))]
    domains: Vec<String>,
    /// Names of the claims with a user's attributes. Defaults for `subject`, `email` and `name` are
    /// `sub`, `email` and `name`.
    #[serde(default)]
    claims_mapping: ClaimsMapping,
    /// Role that each group in a token assigns.
    #[serde(default)]
    role_mapping: RolesByTokenGroup,
}

/// Changes of an identity provider; absent members keep their values.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct IdentityProviderChanges {
    #[schemars(length(min = 1, max = 200))]
    name: Option<String>,
    #[schemars(length(min = 1, max = 500))]
    client_id: Option<String>,
    #[schemars(length(min = 1, max = 50))]
    domains: Option<Vec<String>>,
    claims_mapping: Option<ClaimsMapping>,
    role_mapping: Option<RolesByTokenGroup>,
}

/// A request to rotate the client secret of a provider and to read its keys again.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Rotation")]
pub(crate) struct RotateSecretRequest {
    /// New client secret; if absent, the current one stays.
    #[schemars(length(min = 1, max = 1000), extend("writeOnly" = true))]
    client_secret: Option<String>,
}

fn name(given: &str) -> Result<String> {
    let name = given.trim();
    if name.is_empty() {
        return Err(Problem::validation("/name", "has no visible character"));
    }
    Ok(name.to_owned())
}

fn check_issuer(ctx: &Ctx, issuer: &str) -> Result<()> {
    if issuer.contains(['?', '#']) {
        let message = "has a query or a fragment, which an issuer must not have";
        return Err(Problem::validation("/issuer", message));
    }
    ctx.check_url(issuer).map_err(|rule| {
        Problem::validation("/issuer", rule)
            .hint("Copy the issuer exactly from the provider's openid-configuration.")
    })
}

/// Checks the length of the name of a claim or group.
fn check_word(pointer: &str, word: &str) -> Result<()> {
    if (1..=MOST_CHARACTERS).contains(&word.chars().count()) {
        return Ok(());
    }
    Err(Problem::validation(pointer, "has names of 1 to 200 characters only"))
}

/// Returns the claims mapping with defaults for absent attributes.
fn claims(mut mapping: ClaimsMapping) -> Result<ClaimsMapping> {
    for claim in mapping.values() {
        check_word("/claims_mapping", claim)?;
    }
    let usual = [
        (UserAttribute::Subject, "sub"),
        (UserAttribute::Email, "email"),
        (UserAttribute::Name, "name"),
    ];
    for (attribute, claim) in usual {
        mapping.entry(attribute).or_insert_with(|| claim.to_owned());
    }
    Ok(mapping)
}

/// Returns the role mapping. Refuses one without a claim for groups in the claims mapping.
fn roles(mapping: RolesByTokenGroup, claims: &ClaimsMapping) -> Result<RolesByTokenGroup> {
    if mapping.len() > MOST_GROUPS {
        return Err(Problem::validation("/role_mapping", "names more than 200 groups"));
    }
    for group in mapping.keys() {
        check_word("/role_mapping", group)?;
    }
    if !mapping.is_empty() && !claims.contains_key(&UserAttribute::Groups) {
        let message = "names groups, but claims_mapping does not name their claim";
        return Err(
            Problem::validation("/role_mapping", message).hint("Add \"groups\" to claims_mapping.")
        );
    }
    Ok(mapping)
}

fn name_taken(error: DocumentError) -> Problem {
    match error {
        DocumentError::UniqueConflict(_) => {
            Problem::conflict("name_taken", "Another identity provider has this name.")
        }
        other => other.into(),
    }
}

pub(crate) fn list(ctx: &Ctx) -> Result<Vec<IdentityProvider>> {
    let all = ctx.documents::<StoredProvider>().query().ascending("name");
    let all = all.limit(MOST_PROVIDERS).list()?;
    Ok(all.into_iter().map(|stored| view(ctx, stored)).collect())
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<IdentityProviderDetails>> {
    Ok(details(ctx, ctx.documents().get(id)?))
}

fn provider(ctx: &Ctx, new: NewIdentityProvider) -> Result<StoredProvider> {
    let claims_mapping = claims(new.claims_mapping)?;
    Ok(StoredProvider {
        role_mapping: roles(new.role_mapping, &claims_mapping)?,
        claims_mapping,
        client_id: new.client_id,
        discovery_metadata: None,
        domains: domains::normalized(&new.domains)?,
        has_client_secret: new.client_secret.is_some(),
        issuer: new.issuer,
        jwks_sha256: None,
        last_discovered_at: None,
        last_error_code: None,
        last_rotated_at: None,
        name: name(&new.name)?,
        status: ProviderStatus::Draft,
        discovery: 0,
        created_by: ctx.user(),
    })
}

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewIdentityProvider>,
) -> Result<Created<Versioned<IdentityProviderDetails>>> {
    check_issuer(ctx, &new.issuer)?;
    let secret = new.client_secret.clone();
    let mut value = provider(ctx, new)?;
    if ctx.documents::<StoredProvider>().query().count()? >= u64::from(MOST_PROVIDERS) {
        let detail = "A workspace has at most 50 identity providers.";
        return Err(Problem::conflict("too_many_identity_providers", detail).hint("Delete one."));
    }
    let id = ctx.new_id();
    domains::assign(ctx, id, &[], &value.domains)?;
    if let Some(secret) = secret {
        ctx.secrets().put(&secret_name(id), secret.as_bytes());
    }
    discovery::enqueue(ctx, id, &mut value);
    let stored = ctx.documents().create_stored(id, value).map_err(name_taken)?;
    ctx.publish(ProviderCreated(ProviderEvent::of(&stored)));
    Ok(Created(details(ctx, stored)))
}

pub(crate) fn update(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(changes): Body<IdentityProviderChanges>,
) -> Result<Versioned<IdentityProviderDetails>> {
    let mut provider = ctx.documents::<StoredProvider>().get(id)?;
    ctx.check_if_match(provider.version)?;
    if let Some(given) = changes.name {
        provider.name = name(&given)?;
    }
    if let Some(client_id) = changes.client_id {
        provider.client_id = client_id;
    }
    if let Some(given) = changes.domains {
        let domains = domains::normalized(&given)?;
        domains::assign(ctx, id, &provider.domains, &domains)?;
        provider.domains = domains;
    }
    if let Some(mapping) = changes.claims_mapping {
        provider.claims_mapping = claims(mapping)?;
    }
    let mapping = changes.role_mapping.unwrap_or_else(|| provider.role_mapping.clone());
    provider.role_mapping = roles(mapping, &provider.claims_mapping)?;
    ctx.documents().replace(&mut provider).map_err(name_taken)?;
    Ok(details(ctx, provider))
}

pub(crate) fn rotate(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(rotation): Body<RotateSecretRequest>,
) -> Result<Versioned<IdentityProviderDetails>> {
    let mut provider = ctx.documents::<StoredProvider>().get(id)?;
    ctx.check_if_match(provider.version)?;
    if let Some(secret) = rotation.client_secret {
        ctx.secrets().put(&secret_name(id), secret.as_bytes());
        provider.has_client_secret = true;
    }
    provider.last_rotated_at = Some(ctx.now());
    discovery::enqueue(ctx, id, &mut provider);
    ctx.documents().replace(&mut provider)?;
    ctx.publish(ProviderRotated(ProviderEvent::of(&provider)));
    Ok(details(ctx, provider))
}

pub(crate) fn disable(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
) -> Result<Versioned<IdentityProviderDetails>> {
    let mut provider = ctx.documents::<StoredProvider>().get(id)?;
    ctx.check_if_match(provider.version)?;
    if provider.status != ProviderStatus::Disabled {
        provider.status = ProviderStatus::Disabled;
        ctx.documents().replace(&mut provider)?;
        ctx.publish(ProviderDisabled(ProviderEvent::of(&provider)));
    }
    Ok(details(ctx, provider))
}

/// Enables a provider. It is discovered again before users can sign in with it. A draft is
/// discovered again, too: an admin may have cancelled its job.
pub(crate) fn enable(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
) -> Result<Versioned<IdentityProviderDetails>> {
    let mut provider = ctx.documents::<StoredProvider>().get(id)?;
    ctx.check_if_match(provider.version)?;
    if provider.status != ProviderStatus::Active {
        provider.status = ProviderStatus::Draft;
        discovery::enqueue(ctx, id, &mut provider);
        ctx.documents().replace(&mut provider)?;
    }
    Ok(details(ctx, provider))
}

pub(crate) fn remove(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<NoContent> {
    let provider = ctx.documents::<StoredProvider>().get(id)?;
    ctx.check_if_match(provider.version)?;
    domains::release(ctx, &provider.domains)?;
    ctx.secrets().delete(&secret_name(id));
    ctx.documents().delete(&provider)?;
    ctx.publish(ProviderDeleted(ProviderEvent::of(&provider)));
    Ok(NoContent)
}
