//! Finds the catalog's repositories and services named in deployments.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::catalog::{Repository, Service};

/// Finds a document by id or name.
fn named<T: Document>(scope: &Scope, text: &str) -> Result<Option<Stored<T>>, DocumentError> {
    if let Ok(id) = text.parse::<Uuid>()
        && let Some(found) = scope.documents::<T>().find(id)?
    {
        return Ok(Some(found));
    }
    scope.documents::<T>().query().equals("name", text).first()
}

/// Finds a repository by id or name.
pub(crate) fn repository(scope: &Scope, text: &str) -> Result<Option<Uuid>, DocumentError> {
    Ok(named::<Repository>(scope, text)?.map(|found| found.uuid()))
}

/// Finds a service by id or name.
pub(crate) fn service(scope: &Scope, text: &str) -> Result<Option<Stored<Service>>, DocumentError> {
    named(scope, text)
}

/// Returns the service built from this repository, if there is exactly one.
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
