//! The catalog's repositories, as far as audits and schedules look at them.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

/// A repository of the workspace.
#[derive(Serialize, Deserialize)]
pub(crate) struct Repository {
    pub(crate) name: String,
    pub(crate) default_branch: Option<String>,
    #[serde(default)]
    pub(crate) archived: bool,
}

impl Document for Repository {
    const COLLECTION: &'static str = "catalog.repositories";
}

/// The repository that a request names, fit to be audited.
pub(crate) fn auditable(scope: &Scope, id: Uuid) -> Result<Stored<Repository>> {
    let Some(repository) = scope.documents::<Repository>().find(id)? else {
        let detail = format!("This workspace has no repository {id}.");
        let hint = "Take `repository_id` from the workspace's list of repositories.";
        return Err(Problem { detail, ..Problem::not_found() }.hint(hint));
    };
    if repository.archived {
        let detail = format!("The repository {} is archived.", repository.name);
        let hint = "Take it out of the archive first.";
        return Err(Problem::conflict("repository_archived", detail).hint(hint));
    }
    Ok(repository)
}

/// Is the repository still there to be audited? Its default branch, if so.
pub(crate) fn still_auditable(
    scope: &Scope,
    id: Uuid,
) -> Result<Option<Stored<Repository>>, DocumentError> {
    let repository = scope.documents::<Repository>().find(id)?;
    Ok(repository.filter(|repository| !repository.archived))
}
