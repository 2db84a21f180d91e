//! Model endpoints: the OpenAI-compatible servers of a workspace, with their keys and models.

use area_sdk::Scope;
use area_sdk::prelude::*;

use crate::validation;

/// Maximum number of model endpoints of a workspace.
pub(crate) const MOST_ENDPOINTS: u32 = 50;

/// Maximum length of a model endpoint's name and of a model id, in characters.
const MOST_NAME_CHARACTERS: usize = 200;

/// Maximum size of the API key of a model endpoint, in bytes.
const MOST_KEY_BYTES: usize = 4096;

/// Id of a model, as its server names it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct ModelId(#[schemars(length(min = 1, max = 200))] pub(crate) String);

/// A request to create a model endpoint.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewModelEndpoint {
    /// Bearer token for the server; without it, requests have no credential.
    #[schemars(length(min = 1, max = 4096), extend("writeOnly" = true))]
    api_key: Option<String>,
    /// URL below which `/models` and `/chat/completions` exist: https with a public address.
    #[schemars(length(min = 1, max = 2000), extend("format" = "uri"))]
    base_url: String,
    /// Ids of the models that the endpoint offers. The first is the default.
    #[schemars(length(min = 1, max = 50), extend("uniqueItems" = true))]
    model_ids: Vec<ModelId>,
    #[schemars(length(min = 1, max = 200))]
    name: String,
}

/// A model endpoint: an OpenAI-compatible server with its models.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelEndpoint {
    /// Whether conversations may use the model endpoint.
    active: bool,
    base_url: String,
    created_at: Timestamp,
    has_credential: bool,
    id: Uuid,
    /// Error code of the latest validation; null if it succeeded.
    last_error_code: Option<String>,
    /// Time of the latest successful validation, in which the server listed all models; null if
    /// there was none.
    last_validated_at: Option<Timestamp>,
    model_ids: Vec<ModelId>,
    name: String,
    updated_at: Timestamp,
    workspace_id: Uuid,
}

/// A stored model endpoint. Its API key is a secret of the host, see [`credential_name`].
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StoredEndpoint")]
pub(crate) struct StoredModelEndpoint {
    pub(crate) active: bool,
    pub(crate) base_url: String,
    pub(crate) has_credential: bool,
    pub(crate) last_error_code: Option<String>,
    pub(crate) last_validated_at: Option<Timestamp>,
    pub(crate) model_ids: Vec<ModelId>,
    pub(crate) name: String,
    /// Incremented at each change of the endpoint's address, key or models. Results of validations
    /// for an earlier generation are discarded.
    pub(crate) generation: u32,
    created_by: Uuid,
}

document!(StoredModelEndpoint, "endpoints");

/// Published when a model endpoint was created.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EndpointCreated")]
pub(crate) struct ModelEndpointCreated {
    model_endpoint_id: Uuid,
    name: String,
    base_url: String,
}

event!(ModelEndpointCreated, "model_endpoint.created");

/// Published when a model endpoint was deleted.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EndpointDeleted")]
pub(crate) struct ModelEndpointDeleted {
    model_endpoint_id: Uuid,
    name: String,
}

event!(ModelEndpointDeleted, "model_endpoint.deleted");

/// Returns the name of the host's secret with an endpoint's API key.
pub(crate) fn credential_name(endpoint: Uuid) -> String {
    format!("model-endpoint/{endpoint}")
}

impl StoredModelEndpoint {
    /// Returns the name of the host's secret with the API key; `None` if the endpoint has no key.
    pub(crate) fn credential(&self, id: Uuid) -> Option<String> {
        self.has_credential.then(|| credential_name(id))
    }

    /// Whether the endpoint offers the model with this id.
    pub(crate) fn offers(&self, model: &str) -> bool {
        self.model_ids.iter().any(|id| id.0 == model)
    }

    /// Discards the results of earlier validations of the endpoint and starts a new generation.
    fn renew(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.last_validated_at = None;
        self.last_error_code = None;
    }
}

fn view(scope: &Scope, stored: Stored<StoredModelEndpoint>) -> Versioned<ModelEndpoint> {
    stored.versioned(|stored| ModelEndpoint {
        id: stored.uuid(),
        created_at: stored.created_at,
        updated_at: stored.updated_at,
        active: stored.value.active,
        base_url: stored.value.base_url,
        has_credential: stored.value.has_credential,
        last_error_code: stored.value.last_error_code,
        last_validated_at: stored.value.last_validated_at,
        model_ids: stored.value.model_ids,
        name: stored.value.name,
        workspace_id: scope.workspace_id(),
    })
}

fn check_url(ctx: &Ctx, url: &str) -> Result<()> {
    if url.contains(['?', '#']) {
        let message = "has a query or a fragment, so no path can be added";
        return Err(Problem::validation("/base_url", message));
    }
    ctx.check_url(url).map_err(|rule| {
        Problem::validation("/base_url", rule)
            .hint("Send the https URL without /models or /chat/completions.")
    })
}

/// Refuses a new address on another server (scheme, host or port) if the change contains no API
/// key, because the stored key must never be sent to another server.
fn check_same_origin(before: &str, after: &str) -> Result<()> {
    if origin(before) == origin(after) {
        return Ok(());
    }
    let message = "is on another server (scheme, host or port); the stored key is not sent there";
    Err(Problem::validation("/base_url", message)
        .hint("Send the new server's `api_key` with it, or `null` to remove the key."))
}

/// Returns scheme, host and port of a URL. Equal origins may be spelled differently; the host
/// compares the addresses to which it sends keys.
fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let authority = rest.split(['/', '\\']).next()?;
    let default = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
    let authority = authority.strip_suffix(default).unwrap_or(authority);
    Some(format!("{scheme}://{authority}").to_ascii_lowercase())
}

/// Checks that an API key is visible ASCII, because it is sent in a header.
fn check_key(key: &str) -> Result<()> {
    let good =
        (1..=MOST_KEY_BYTES).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic());
    if good {
        return Ok(());
    }
    let message =
        "is not a valid key: it must have 1 to 4096 visible ASCII characters without spaces";
    Err(Problem::validation("/api_key", message))
}

fn name(given: &str) -> Result<String> {
    let name = given.trim();
    if (1..=MOST_NAME_CHARACTERS).contains(&name.chars().count()) {
        return Ok(name.to_owned());
    }
    Err(Problem::validation("/name", "has no visible character"))
}

fn name_taken(error: area_sdk::DocumentError) -> Problem {
    match error {
        area_sdk::DocumentError::UniqueConflict(_) => {
            Problem::conflict("name_taken", "Another model endpoint has this name already.")
                .hint("Choose another name, or change that endpoint.")
        }
        other => other.into(),
    }
}

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewModelEndpoint>,
) -> Result<Created<Versioned<ModelEndpoint>>> {
    check_url(ctx, &new.base_url)?;
    new.api_key.as_deref().map_or(Ok(()), check_key)?;
    let kept = ctx.documents::<StoredModelEndpoint>().query().count_up_to(MOST_ENDPOINTS)?;
    if kept >= u64::from(MOST_ENDPOINTS) {
        let detail = "A workspace has at most 50 model endpoints.";
        return Err(Problem::conflict("too_many_model_endpoints", detail).hint("Delete one."));
    }
    let id = ctx.new_id();
    let value = StoredModelEndpoint {
        active: true,
        base_url: new.base_url,
        has_credential: new.api_key.is_some(),
        last_error_code: None,
        last_validated_at: None,
        model_ids: new.model_ids,
        name: name(&new.name)?,
        generation: 1,
        created_by: ctx.user(),
    };
    if let Some(key) = new.api_key {
        ctx.secrets().put(&credential_name(id), key.as_bytes());
    }
    let stored = ctx.documents().create_stored(id, value).map_err(name_taken)?;
    ctx.publish(ModelEndpointCreated {
        model_endpoint_id: id,
        name: stored.name.clone(),
        base_url: stored.base_url.clone(),
    });
    validation::enqueue(ctx, id, stored.generation);
    Ok(Created(view(ctx, stored)))
}

/// Query parameters that filter the list of model endpoints.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only endpoints with this value of `active`.
    active: Option<bool>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<ModelEndpoint>> {
    let all = ctx.documents::<StoredModelEndpoint>().query().equals_if("active", params.active);
    let page = all.paging(paging).page()?;
    Ok(page.map(|stored| view(ctx, stored).0))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<ModelEndpoint>> {
    Ok(view(ctx, ctx.documents().get(id)?))
}

/// Changes of a model endpoint; absent members keep their values.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ModelEndpointChanges {
    active: Option<bool>,
    /// New API key; null deletes the key.
    #[serde(default)]
    #[schemars(length(min = 1, max = 4096), extend("writeOnly" = true))]
    api_key: Patch<String>,
    #[schemars(length(min = 1, max = 2000), extend("format" = "uri"))]
    base_url: Option<String>,
    #[schemars(length(min = 1, max = 50), extend("uniqueItems" = true))]
    model_ids: Option<Vec<ModelId>>,
    #[schemars(length(min = 1, max = 200))]
    name: Option<String>,
}

pub(crate) fn update(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(changes): Body<ModelEndpointChanges>,
) -> Result<Versioned<ModelEndpoint>> {
    let mut endpoint = ctx.documents::<StoredModelEndpoint>().get(id)?;
    ctx.check_if_match(endpoint.version)?;
    let renewed =
        !changes.api_key.is_absent() || changes.base_url.is_some() || changes.model_ids.is_some();
    if let Some(url) = &changes.base_url {
        check_url(ctx, url)?;
        if endpoint.has_credential && changes.api_key.is_absent() {
            check_same_origin(&endpoint.base_url, url)?;
        }
    }
    if !changes.api_key.is_absent() {
        replace_key(ctx, &mut endpoint, changes.api_key.value())?;
    }
    if let Some(url) = changes.base_url {
        endpoint.base_url = url;
    }
    if let Some(models) = changes.model_ids {
        endpoint.model_ids = models;
    }
    if let Some(given) = changes.name {
        endpoint.name = name(&given)?;
    }
    endpoint.active = changes.active.unwrap_or(endpoint.active);
    if renewed {
        endpoint.renew();
        validation::enqueue(ctx, id, endpoint.generation);
    }
    ctx.documents().replace(&mut endpoint).map_err(name_taken)?;
    Ok(view(ctx, endpoint))
}

fn replace_key(
    ctx: &Ctx,
    endpoint: &mut Stored<StoredModelEndpoint>,
    key: Option<&String>,
) -> Result<()> {
    let name = credential_name(endpoint.uuid());
    endpoint.has_credential = key.is_some();
    match key {
        Some(key) => {
            check_key(key)?;
            ctx.secrets().put(&name, key.as_bytes());
        }
        None => ctx.secrets().delete(&name),
    }
    Ok(())
}

pub(crate) fn validate(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<ModelEndpoint>> {
    let endpoint = ctx.documents::<StoredModelEndpoint>().get(id)?;
    validation::enqueue(ctx, id, endpoint.generation);
    Ok(view(ctx, endpoint))
}

pub(crate) fn remove(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<NoContent> {
    let endpoint = ctx.documents::<StoredModelEndpoint>().get(id)?;
    ctx.check_if_match(endpoint.version)?;
    ctx.secrets().delete(&credential_name(id));
    ctx.documents().delete(&endpoint)?;
    ctx.publish(ModelEndpointDeleted { model_endpoint_id: id, name: endpoint.value.name });
    Ok(NoContent)
}

/// Returns the default endpoint: the newest active one, validated ones first.
pub(crate) fn preferred(scope: &Scope) -> Result<Option<Stored<StoredModelEndpoint>>> {
    let active = scope.documents::<StoredModelEndpoint>().query().equals("active", true);
    let mut active = active.limit(MOST_ENDPOINTS).list()?;
    active.retain(|endpoint| endpoint.last_error_code.is_none());
    let good = active.iter().position(|endpoint| endpoint.last_validated_at.is_some());
    let first = if active.is_empty() { None } else { Some(0) };
    Ok(good.or(first).map(|place| active.swap_remove(place)))
}
