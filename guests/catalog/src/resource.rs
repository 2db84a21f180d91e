//! What the three kinds have in common: how a document is shown, and what a
//! change may say about a member.

use area_sdk::prelude::*;
use serde::Deserializer;

/// A document as clients see it: what is kept, and the document's own facts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Resource<T> {
    id: Uuid,
    #[serde(flatten)]
    value: T,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl<T> From<Stored<T>> for Resource<T> {
    fn from(stored: Stored<T>) -> Self {
        Self {
            id: stored.uuid(),
            created_at: stored.created_at,
            updated_at: stored.updated_at,
            value: stored.value,
        }
    }
}

/// A document with its version.
pub(crate) fn versioned<T>(stored: Stored<T>) -> Versioned<Resource<T>> {
    let version = stored.version;
    Versioned(stored.into(), version)
}

/// Keeps a new document, and shows it.
pub(crate) fn create<T: Document>(
    ctx: &Ctx,
    id: Uuid,
    value: T,
) -> Result<Created<Versioned<Resource<T>>>> {
    ctx.documents().create(id, &value)?;
    let (id, now) = (id.to_string(), ctx.now());
    Ok(Created(versioned(Stored { id, version: 1, created_at: now, updated_at: now, value })))
}

/// Reads a member whose presence matters: absent is the default `None`, null is
/// `Some(None)`.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// Takes over a member that a change speaks of.
pub(crate) fn assign<T>(member: &mut T, change: Option<T>) {
    if let Some(value) = change {
        *member = value;
    }
}

/// How many a page has where nothing is said.
pub(crate) fn default_limit() -> u32 {
    50
}
