//! Repositories that audits examine.

use area_sdk::prelude::*;

use crate::resource::{self, DocumentResponse, assign, versioned};

/// Maximum size of an `external_id`, in bytes; it is in an index.
const MAX_EXTERNAL_ID_BYTES: usize = 1_500;

/// Maximum size of a `default_branch`, in bytes; it is in indexes of areas that audits report to.
const MAX_BRANCH_BYTES: usize = 255;

/// A stored repository.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Repository {
    pub(crate) name: String,
    provider: String,
    default_branch: String,
    url: Option<String>,
    external_id: Option<String>,
    archived: bool,
}

document!(Repository, "repositories");

/// A request to create a repository.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewRepository {
    /// Name of the repository, unique in the workspace; by convention `organisation/repository`.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"^\S(?:.*\S)?$"))]
    name: String,
    /// Hosting service: `github`, `gitlab`, or any other lower-case word.
    #[serde(default = "default_provider")]
    #[schemars(length(min = 1, max = 50), regex(pattern = "^[a-z][a-z0-9_-]*$"))]
    provider: String,
    /// Name of the default branch, at most 255 bytes.
    #[serde(default = "default_branch")]
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^\S+$"))]
    default_branch: String,
    /// URL of the repository's web page.
    #[schemars(length(min = 1, max = 2048), extend("format" = "uri"))]
    url: Option<String>,
    /// Id of the repository at the hosting service.
    #[schemars(length(min = 1, max = 500))]
    external_id: Option<String>,
}

fn default_provider() -> String {
    "git".to_owned()
}

fn default_branch() -> String {
    "main".to_owned()
}

/// Published when a repository was created.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RepositoryCreated {
    repository_id: Uuid,
    name: String,
    provider: String,
}

event!(RepositoryCreated, "repository.created");

/// Published when a repository was changed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RepositoryUpdated {
    repository_id: Uuid,
    name: String,
    archived: bool,
}

event!(RepositoryUpdated, "repository.updated");

/// Refuses values that are too long for the indexes that they are in.
fn check_sizes(default_branch: Option<&String>, external_id: Option<&String>) -> Result<()> {
    for (pointer, value, most) in [
        ("/default_branch", default_branch, MAX_BRANCH_BYTES),
        ("/external_id", external_id, MAX_EXTERNAL_ID_BYTES),
    ] {
        let bytes = value.map_or(0, String::len);
        if bytes > most {
            let message = format!("has {bytes} bytes; at most {most} are allowed");
            return Err(Problem::validation(pointer, message));
        }
    }
    Ok(())
}

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewRepository>,
) -> Result<Created<Versioned<DocumentResponse<Repository>>>> {
    check_sizes(Some(&new.default_branch), new.external_id.as_ref())?;
    let id = ctx.new_id();
    let repository = Repository {
        name: new.name,
        provider: new.provider,
        default_branch: new.default_branch,
        url: new.url,
        external_id: new.external_id,
        archived: false,
    };
    ctx.publish(RepositoryCreated {
        repository_id: id,
        name: repository.name.clone(),
        provider: repository.provider.clone(),
    });
    resource::create(ctx, id, repository)
}

/// Query parameters that filter the list of repositories.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only repositories whose name contains this text, ignoring case.
    #[schemars(length(max = 200))]
    q: Option<String>,
    provider: Option<String>,
    archived: Option<bool>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<DocumentResponse<Repository>>> {
    let query = ctx
        .documents::<Repository>()
        .query()
        .contains_if(&["name"], params.q.as_deref())
        .equals_if("provider", params.provider)
        .equals_if("archived", params.archived);
    Ok(query.paging(paging).page()?.map(DocumentResponse::from))
}

/// Changes of a repository; absent members keep their values.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RepositoryChanges {
    #[schemars(length(min = 1, max = 200), regex(pattern = r"^\S(?:.*\S)?$"))]
    name: Option<String>,
    #[schemars(length(min = 1, max = 50), regex(pattern = "^[a-z][a-z0-9_-]*$"))]
    provider: Option<String>,
    /// Name of the default branch, at most 255 bytes.
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^\S+$"))]
    default_branch: Option<String>,
    #[serde(default)]
    #[schemars(length(min = 1, max = 2048), extend("format" = "uri"))]
    url: Patch<String>,
    #[serde(default)]
    #[schemars(length(min = 1, max = 500))]
    external_id: Patch<String>,
    archived: Option<bool>,
}

pub(crate) fn update(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(changes): Body<RepositoryChanges>,
) -> Result<Versioned<DocumentResponse<Repository>>> {
    let mut repository = ctx.documents::<Repository>().get(id)?;
    ctx.check_if_match(repository.version)?;
    check_sizes(changes.default_branch.as_ref(), changes.external_id.value())?;
    assign(&mut repository.name, changes.name);
    assign(&mut repository.provider, changes.provider);
    assign(&mut repository.default_branch, changes.default_branch);
    changes.url.apply(&mut repository.url);
    changes.external_id.apply(&mut repository.external_id);
    assign(&mut repository.archived, changes.archived);
    ctx.documents().replace(&mut repository)?;
    let (name, archived) = (repository.name.clone(), repository.archived);
    ctx.publish(RepositoryUpdated { repository_id: id, name, archived });
    Ok(versioned(repository))
}
