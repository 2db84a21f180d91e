//! The catalog's repositories and services, as far as deployments name them.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

/// What is needed of a repository.
#[derive(Serialize, Deserialize)]
pub(crate) struct Repository {
    name: String,
}

impl Document for Repository {
    const COLLECTION: &'static str = "catalog.repositories";
}

/// What is needed of a service.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Service {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) repository_ids: Vec<Uuid>,
    #[serde(default)]
    pub(crate) owner_id: Option<Uuid>,
}

impl Document for Service {
    const COLLECTION: &'static str = "catalog.services";
}

/// The document of an id or a name.
fn named<T: Document>(scope: &Scope, text: &str) -> Result<Option<Stored<T>>, DocumentError> {
    if let Ok(id) = text.parse::<Uuid>()
        && let Some(found) = scope.documents::<T>().find(id)?
    {
        return Ok(Some(found));
    }
    scope.documents::<T>().query().equals("name", text).first()
}

/// The repository of an id or a name.
pub(crate) fn repository(scope: &Scope, text: &str) -> Result<Option<Uuid>, DocumentError> {
    Ok(named::<Repository>(scope, text)?.map(|found| found.uuid()))
}

/// The service of an id or a name.
pub(crate) fn service(scope: &Scope, text: &str) -> Result<Option<Stored<Service>>, DocumentError> {
    named(scope, text)
}

/// The service that is built from this repository, where there is only one.
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
