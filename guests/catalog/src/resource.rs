//! Code shared by the three kinds of documents: responses, lists without duplicates and partial
//! updates.

use std::collections::BTreeSet;

use area_sdk::prelude::*;

/// A catalog document in responses: its content, id and times.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}")]
pub(crate) struct DocumentResponse<T> {
    id: Uuid,
    #[serde(flatten)]
    value: T,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl<T> From<Stored<T>> for DocumentResponse<T> {
    fn from(stored: Stored<T>) -> Self {
        Self {
            id: stored.uuid(),
            created_at: stored.created_at,
            updated_at: stored.updated_at,
            value: stored.value,
        }
    }
}

/// Returns a document as a response, with its version in `ETag`.
pub(crate) fn versioned<T>(stored: Stored<T>) -> Versioned<DocumentResponse<T>> {
    let version = stored.version;
    Versioned(stored.into(), version)
}

/// Stores a new document and returns it as a response with status 201.
pub(crate) fn create<T: Document>(
    ctx: &Ctx,
    id: Uuid,
    value: T,
) -> Result<Created<Versioned<DocumentResponse<T>>>> {
    Ok(Created(versioned(ctx.documents().create_stored(id, value)?)))
}

/// Handler that returns one document of the catalog: a repository, service or group.
pub(crate) fn show<T: Document>(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
) -> Result<Versioned<DocumentResponse<T>>> {
    Ok(versioned(ctx.documents().get(id)?))
}

/// Removes duplicates and keeps the order.
pub(crate) fn once<T: Ord + Clone>(values: Vec<T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    values.into_iter().filter(|value| seen.insert(value.clone())).collect()
}

/// Sets a member if the change contains it.
pub(crate) fn assign<T>(member: &mut T, change: Option<T>) {
    if let Some(value) = change {
        *member = value;
    }
}
