//! Finds the catalog's repositories and services that evidence about deployments names.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::catalog::Service;

/// Returns the catalog's document (a repository or service) with this text as id or name; `None` if
/// there is none.
pub(crate) fn named<T: Document>(
    scope: &Scope,
    text: &str,
) -> Result<Option<Stored<T>>, DocumentError> {
    if let Ok(id) = text.parse::<Uuid>()
        && let Some(found) = scope.documents::<T>().find(id)?
    {
        return Ok(Some(found));
    }
    scope.documents::<T>().query().equals("name", text).first()
}

/// Returns the service that is built from this repository, if there is exactly one.
pub(crate) fn service_of(
    scope: &Scope,
    repository_id: Uuid,
) -> Result<Option<Stored<Service>>, DocumentError> {
    let all = scope.documents::<Service>().query().limit(1000).list()?;
    let mut built =
        all.into_iter().filter(|service| service.repository_ids.contains(&repository_id));
    let first = built.next();
    Ok(first.filter(|_| built.next().is_none()))
}
