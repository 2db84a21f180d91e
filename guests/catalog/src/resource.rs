//! Code shared by the three kinds of documents: responses and partial updates.

use area_sdk::prelude::*;

/// A catalog document in responses: its content, id and times.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}")]
pub(crate) struct DocumentView<T> {
    id: Uuid,
    #[serde(flatten)]
    value: T,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl<T> From<Stored<T>> for DocumentView<T> {
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
pub(crate) fn versioned<T>(stored: Stored<T>) -> Versioned<DocumentView<T>> {
    let version = stored.version;
    Versioned(stored.into(), version)
}

/// Stores a new document and returns it as a response with status 201.
pub(crate) fn create<T: Document>(
    ctx: &Ctx,
    id: Uuid,
    value: T,
) -> Result<Created<Versioned<DocumentView<T>>>> {
    ctx.documents().create(id, &value)?;
    let (id, now) = (id.to_string(), ctx.now());
    Ok(Created(versioned(Stored { id, version: 1, created_at: now, updated_at: now, value })))
}

/// Sets a member if the change contains it.
pub(crate) fn assign<T>(member: &mut T, change: Option<T>) {
    if let Some(value) = change {
        *member = value;
    }
}
