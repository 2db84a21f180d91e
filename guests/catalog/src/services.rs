//! Services with the repositories they are built from and their owners.

use area_sdk::prelude::*;

use crate::groups::UserGroup;
use crate::repositories::Repository;
use crate::resource::{self, DocumentResponse, assign, once, versioned};

/// A stored service.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) repository_ids: Vec<Uuid>,
    /// User of the workspace who owns the service.
    pub(crate) owner_id: Option<Uuid>,
    pub(crate) group_id: Option<Uuid>,
    pub(crate) environment: Option<String>,
    pub(crate) tier: Option<String>,
    /// Id of the latest evidence record about the service.
    pub(crate) evidence_id: Option<Uuid>,
    /// Time at which the producer of that evidence observed the service.
    pub(crate) observed_at: Option<Timestamp>,
}

document!(Service, "services");

impl Service {
    /// Returns a service with only its name set.
    pub(crate) fn named(name: String) -> Self {
        Self {
            name,
            description: None,
            repository_ids: Vec::new(),
            owner_id: None,
            group_id: None,
            environment: None,
            tier: None,
            evidence_id: None,
            observed_at: None,
        }
    }
}

/// A request to create a service.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewService {
    /// Name of the service, unique in the workspace.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"^\S(?:.*\S)?$"))]
    name: String,
    #[schemars(length(max = 4000))]
    description: Option<String>,
    /// Ids of the repositories from which the service is built.
    #[serde(default)]
    #[schemars(length(max = 100))]
    repository_ids: Vec<Uuid>,
    /// User of the workspace who owns the service.
    owner_id: Option<Uuid>,
    group_id: Option<Uuid>,
    /// Deployment environment of the service, for example `production`.
    #[schemars(length(min = 1, max = 100))]
    environment: Option<String>,
    /// Importance of the service, in the organization's own words.
    #[schemars(length(min = 1, max = 50))]
    tier: Option<String>,
}

/// Published when a service was created.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ServiceCreated {
    pub(crate) service_id: Uuid,
    pub(crate) name: String,
}

event!(ServiceCreated, "service.created");

/// Published when a service was changed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ServiceUpdated {
    pub(crate) service_id: Uuid,
    pub(crate) name: String,
}

event!(ServiceUpdated, "service.updated");

/// Refuses ids of repositories, groups or users that the workspace does not have.
fn check(
    ctx: &Ctx,
    repository_ids: &[Uuid],
    owner_id: Option<Uuid>,
    group_id: Option<Uuid>,
) -> Result<()> {
    let known = ctx.documents::<Repository>().get_many(repository_ids)?;
    let missing = |id: &Uuid| !known.iter().any(|repository| repository.uuid() == *id);
    if let Some(place) = repository_ids.iter().position(missing) {
        let message = "The workspace has no such repository.";
        return Err(Problem::validation(format!("/repository_ids/{place}"), message));
    }
    if owner_id.is_some_and(|id| ctx.member(id).is_none()) {
        return Err(Problem::validation(
            "/owner_id",
            "This user is not a member of the workspace.",
        ));
    }
    match group_id.map(|id| ctx.documents::<UserGroup>().find(id)).transpose()? {
        Some(None) => Err(Problem::validation("/group_id", "The workspace has no such group.")),
        _ => Ok(()),
    }
}

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewService>,
) -> Result<Created<Versioned<DocumentResponse<Service>>>> {
    check(ctx, &new.repository_ids, new.owner_id, new.group_id)?;
    let id = ctx.new_id();
    let service = Service {
        description: new.description,
        repository_ids: once(new.repository_ids),
        owner_id: new.owner_id,
        group_id: new.group_id,
        environment: new.environment,
        tier: new.tier,
        ..Service::named(new.name)
    };
    ctx.publish(ServiceCreated { service_id: id, name: service.name.clone() });
    resource::create(ctx, id, service)
}

/// Query parameters that filter the list of services.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only services whose name contains this text, ignoring case.
    #[schemars(length(max = 200))]
    q: Option<String>,
    owner_id: Option<Uuid>,
    group_id: Option<Uuid>,
    environment: Option<String>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<DocumentResponse<Service>>> {
    let query = ctx
        .documents::<Service>()
        .query()
        .contains_if(&["name"], params.q.as_deref())
        .equals_if("owner_id", params.owner_id)
        .equals_if("group_id", params.group_id)
        .equals_if("environment", params.environment);
    Ok(query.paging(paging).page()?.map(DocumentResponse::from))
}

/// Changes of a service; absent members keep their values.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ServiceChanges {
    #[schemars(length(min = 1, max = 200), regex(pattern = r"^\S(?:.*\S)?$"))]
    name: Option<String>,
    #[serde(default)]
    #[schemars(length(max = 4000))]
    description: Patch<String>,
    #[schemars(length(max = 100))]
    repository_ids: Option<Vec<Uuid>>,
    #[serde(default)]
    owner_id: Patch<Uuid>,
    #[serde(default)]
    group_id: Patch<Uuid>,
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    environment: Patch<String>,
    #[serde(default)]
    #[schemars(length(min = 1, max = 50))]
    tier: Patch<String>,
}

pub(crate) fn update(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(changes): Body<ServiceChanges>,
) -> Result<Versioned<DocumentResponse<Service>>> {
    let mut service = ctx.documents::<Service>().get(id)?;
    ctx.check_if_match(service.version)?;
    let repositories = changes.repository_ids.as_deref().unwrap_or_default();
    let (owner, group) = (changes.owner_id.value().copied(), changes.group_id.value().copied());
    check(ctx, repositories, owner, group)?;
    assign(&mut service.name, changes.name);
    changes.description.apply(&mut service.description);
    assign(&mut service.repository_ids, changes.repository_ids.map(once));
    changes.owner_id.apply(&mut service.owner_id);
    changes.group_id.apply(&mut service.group_id);
    changes.environment.apply(&mut service.environment);
    changes.tier.apply(&mut service.tier);
    ctx.documents().replace(&mut service)?;
    ctx.publish(ServiceUpdated { service_id: id, name: service.name.clone() });
    Ok(versioned(service))
}
