//! What is needed of the catalog.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use crate::codeowners::Dialect;

/// A repository.
#[derive(Serialize, Deserialize)]
pub(crate) struct Repository {
    provider: String,
}

impl Document for Repository {
    const COLLECTION: &'static str = "catalog.repositories";
}

impl Repository {
    /// The dialect of the host it is on, where that is known.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        match self.provider.as_str() {
            "github" => Some(Dialect::Github),
            "gitlab" => Some(Dialect::Gitlab),
            _ => None,
        }
    }
}

/// A group of people.
#[derive(Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) member_ids: Vec<Uuid>,
    pub(crate) identities: Vec<String>,
}

impl Document for Group {
    const COLLECTION: &'static str = "catalog.groups";
}

/// A service.
#[derive(Serialize, Deserialize)]
pub(crate) struct Service {
    pub(crate) repository_ids: Vec<Uuid>,
    pub(crate) owner_id: Option<Uuid>,
    pub(crate) group_id: Option<Uuid>,
}

impl Document for Service {
    const COLLECTION: &'static str = "catalog.services";
}

/// All documents of a kind, up to 2,000.
pub(crate) fn all<T: Document>(scope: &Scope) -> Result<Vec<Stored<T>>, DocumentError> {
    let first = scope.documents::<T>().query().limit(1000).page()?;
    let mut found = first.items;
    if first.next_cursor.is_some() {
        found.extend(scope.documents::<T>().query().cursor(first.next_cursor).limit(1000).list()?);
    }
    Ok(found)
}
