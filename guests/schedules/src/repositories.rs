//! Reads repositories of the area `catalog`.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::catalog::Repository;

/// Returns a repository that can be audited, or the error for the client.
pub(crate) fn auditable(scope: &Scope, id: Uuid) -> Result<Stored<Repository>> {
    let Some(repository) = scope.documents::<Repository>().find(id)? else {
        let detail = format!("This workspace has no repository {id}.");
        let hint = "Use a `repository_id` from the workspace's list of repositories.";
        return Err(Problem { detail, ..Problem::not_found() }.hint(hint));
    };
    if repository.archived {
        let detail = format!("The repository {} is archived.", repository.name);
        let hint = "Restore it first.";
        return Err(Problem::conflict("repository_archived", detail).hint(hint));
    }
    Ok(repository)
}

/// Returns a repository; `None` if it was deleted or archived.
pub(crate) fn still_auditable(
    scope: &Scope,
    id: Uuid,
) -> Result<Option<Stored<Repository>>, DocumentError> {
    let repository = scope.documents::<Repository>().find(id)?;
    Ok(repository.filter(|repository| !repository.archived))
}
