//! Reads documents of the area `catalog`.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::catalog::Repository;

use crate::codeowners::Dialect;

/// Returns the CODEOWNERS dialect of the repository's hosting service; `None` if the service is
/// neither GitHub nor GitLab.
pub(crate) fn dialect(repository: &Repository) -> Option<Dialect> {
    match repository.provider.as_str() {
        "github" => Some(Dialect::Github),
        "gitlab" => Some(Dialect::Gitlab),
        _ => None,
    }
}

/// Returns all documents of a collection, at most 2,000.
pub(crate) fn all<T: Document>(scope: &Scope) -> Result<Vec<Stored<T>>, DocumentError> {
    let first = scope.documents::<T>().query().limit(1000).page()?;
    let mut found = first.items;
    if first.next_cursor.is_some() {
        found.extend(scope.documents::<T>().query().cursor(first.next_cursor).limit(1000).list()?);
    }
    Ok(found)
}
