//! Typed access to the workspace's documents.

mod query;
mod value;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use self::query::MAX_SEARCH_TEXT;
pub use self::query::Query;
use crate::context::Scope;
use crate::reply::Versioned;
use crate::time::Timestamp;
use crate::wit::assurance::area::documents as wit;
pub use crate::wit::assurance::area::documents::Value;

/// A type whose values are the documents of a collection.
pub trait Document: Serialize + DeserializeOwned {
    /// Name of the collection; `area.name` for a collection of another area.
    const COLLECTION: &'static str;
}

/// Implements [`Document`] for a type: `document!(StoredCase, "cases");`.
#[macro_export]
macro_rules! document {
    ($type:ty, $collection:expr) => {
        impl $crate::Document for $type {
            const COLLECTION: &'static str = $collection;
        }
    };
}

/// Error of reading or writing documents. In a handler, `?` converts it to a problem. Access to a
/// collection or field that the manifest does not declare panics instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentError {
    /// No document with this id exists.
    NotFound,
    /// A document with this id already exists.
    AlreadyExists,
    /// The document has this version, not the expected one.
    VersionConflict(u64),
    /// Another document has the same values in a unique index; these are the fields of the index.
    UniqueConflict(Vec<String>),
    /// The cursor was altered, is too old, or belongs to another query.
    InvalidCursor,
    /// The call has reached its limit of documents or bytes.
    LimitExceeded,
    /// The text of a `contains` condition has more than 1,000 characters.
    SearchTextTooLong,
}

impl From<wit::Error> for DocumentError {
    #[track_caller]
    fn from(error: wit::Error) -> Self {
        match error {
            wit::Error::NotFound => Self::NotFound,
            wit::Error::AlreadyExists => Self::AlreadyExists,
            wit::Error::VersionConflict(current) => Self::VersionConflict(current),
            wit::Error::UniqueConflict(fields) => Self::UniqueConflict(fields),
            wit::Error::InvalidCursor => Self::InvalidCursor,
            wit::Error::LimitExceeded => Self::LimitExceeded,
            wit::Error::Misuse(what) => panic!("documents misused: {what}"),
        }
    }
}

/// A stored document: the value with its id, version and times. Dereferences to the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<T> {
    /// Id of the document.
    pub id: String,
    /// Version, 1 at creation and incremented at each change.
    pub version: u64,
    /// Time at which the document was created.
    pub created_at: Timestamp,
    /// Time at which the document was last changed.
    pub updated_at: Timestamp,
    /// Content of the document.
    pub value: T,
}

impl<T> Stored<T> {
    /// Returns the id as a UUID. Panics if the area uses other ids for these documents.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        self.id.parse().unwrap_or_else(|_| panic!("document id {:?} is no UUID", self.id))
    }

    /// Converts the document for a response, with its version in `ETag`.
    pub fn versioned<R>(self, view: impl FnOnce(Self) -> R) -> Versioned<R> {
        let version = self.version;
        Versioned(view(self), version)
    }
}

impl<T> Deref for Stored<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Stored<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: Document> Stored<T> {
    fn read(document: wit::Document) -> Self {
        let value = serde_json::from_str(&document.body).unwrap_or_else(|error| {
            panic!("{} {} is not what its type says: {error}", T::COLLECTION, document.id)
        });
        Self {
            id: document.id,
            version: document.version,
            created_at: Timestamp(document.created_at),
            updated_at: Timestamp(document.updated_at),
            value,
        }
    }
}

/// One page of a list outside the published contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    /// Items of this page, at most `limit`.
    pub items: Vec<T>,
    /// Value for the parameter `cursor` of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Converts the items and keeps the cursor.
    #[must_use]
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(convert).collect(), next_cursor: self.next_cursor }
    }
}

/// Access to a collection within one call.
#[derive(Debug)]
pub struct Documents<'a, T> {
    scope: &'a Scope,
    of: PhantomData<fn() -> T>,
}

fn body(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a document that JSON can express")
}

fn creation(id: impl fmt::Display, value: &impl Serialize) -> wit::Write {
    wit::Write::Create((id.to_string(), body(value)))
}

fn replacement<T: Serialize>(document: &Stored<T>) -> wit::Write {
    wit::Write::Replace((document.id.clone(), Some(document.version), body(&document.value)))
}

fn deletion<T>(document: &Stored<T>) -> wit::Write {
    wit::Write::Delete((document.id.clone(), Some(document.version)))
}

impl<'a, T: Document> Documents<'a, T> {
    pub(crate) fn new(scope: &'a Scope) -> Self {
        Self { scope, of: PhantomData }
    }

    /// Returns the document with this id; `None` if it does not exist.
    ///
    /// # Errors
    /// When the call's limits are used up.
    #[track_caller]
    pub fn find(&self, id: impl fmt::Display) -> Result<Option<Stored<T>>, DocumentError> {
        let found = self.scope.host.documents_get(T::COLLECTION, &id.to_string())?;
        Ok(found.map(Stored::read))
    }

    /// Returns the document with this id.
    ///
    /// # Errors
    /// [`DocumentError::NotFound`], and when the call's limits are used up.
    #[track_caller]
    pub fn get(&self, id: impl fmt::Display) -> Result<Stored<T>, DocumentError> {
        self.find(id)?.ok_or(DocumentError::NotFound)
    }

    /// Returns the documents that exist, in the order of `ids`.
    ///
    /// # Errors
    /// When the call's limits are used up.
    #[track_caller]
    pub fn get_many(
        &self,
        ids: impl IntoIterator<Item = impl fmt::Display>,
    ) -> Result<Vec<Stored<T>>, DocumentError> {
        let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
        let found = self.scope.host.documents_get_many(T::COLLECTION, &ids)?;
        Ok(found.into_iter().map(Stored::read).collect())
    }

    /// Starts a query of the collection. Without conditions and order, it matches all documents,
    /// ordered by id descending: newest first for time-ordered ids.
    pub fn query(&self) -> Query<'a, T> {
        Query {
            scope: self.scope,
            of: PhantomData,
            query: wit::Query {
                collection: T::COLLECTION.to_owned(),
                conditions: Vec::new(),
                order: Vec::new(),
                start: wit::Start::First,
                limit: 50,
            },
        }
    }

    /// Creates a document.
    ///
    /// # Errors
    /// [`DocumentError::AlreadyExists`], [`DocumentError::UniqueConflict`].
    #[track_caller]
    pub fn create(&self, id: impl fmt::Display, value: &T) -> Result<(), DocumentError> {
        self.write(creation(id, value)).map(drop)
    }

    /// Creates a document and returns it as stored.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    #[track_caller]
    pub fn create_stored(
        &self,
        id: impl fmt::Display,
        value: T,
    ) -> Result<Stored<T>, DocumentError> {
        let (id, now) = (id.to_string(), self.scope.now());
        let version = self.write(creation(&id, &value))?;
        Ok(Stored { id, version, created_at: now, updated_at: now, value })
    }

    /// Creates many documents at once.
    ///
    /// # Errors
    /// As for [`create`](Self::create); then none of them is kept.
    #[track_caller]
    pub fn create_all<'v>(
        &self,
        documents: impl IntoIterator<Item = (impl fmt::Display, &'v T)>,
    ) -> Result<(), DocumentError>
    where
        T: 'v,
    {
        self.write_all(documents.into_iter().map(|(id, value)| creation(id, value)))
    }

    /// Replaces the document and updates its version and time, unless it has changed since it was
    /// read.
    ///
    /// # Errors
    /// [`DocumentError::VersionConflict`] if the document has changed since it was read.
    #[track_caller]
    pub fn replace(&self, document: &mut Stored<T>) -> Result<(), DocumentError> {
        document.version = self.write(replacement(document))?;
        document.updated_at = self.scope.now();
        Ok(())
    }

    /// Replaces many documents at once, unless one has changed since it was read.
    ///
    /// # Errors
    /// As for [`replace`](Self::replace); then none of them is kept.
    #[track_caller]
    pub fn replace_all<'v>(
        &self,
        documents: impl IntoIterator<Item = &'v Stored<T>>,
    ) -> Result<(), DocumentError>
    where
        T: 'v,
    {
        self.write_all(documents.into_iter().map(replacement))
    }

    /// Deletes many documents at once, unless one has changed since it was read.
    ///
    /// # Errors
    /// As for [`delete`](Self::delete); then none of them is removed.
    #[track_caller]
    pub fn delete_all<'v>(
        &self,
        documents: impl IntoIterator<Item = &'v Stored<T>>,
    ) -> Result<(), DocumentError>
    where
        T: 'v,
    {
        self.write_all(documents.into_iter().map(deletion))
    }

    /// Deletes the document, unless it has changed since it was read.
    ///
    /// # Errors
    /// [`DocumentError::VersionConflict`] if the document has changed since it was read.
    #[track_caller]
    pub fn delete(&self, document: &Stored<T>) -> Result<(), DocumentError> {
        self.write(deletion(document)).map(drop)
    }

    #[track_caller]
    fn write(&self, write: wit::Write) -> Result<u64, DocumentError> {
        let versions =
            self.scope.host.documents_apply(T::COLLECTION, std::slice::from_ref(&write))?;
        Ok(versions.first().copied().unwrap_or_default())
    }

    #[track_caller]
    fn write_all(&self, writes: impl Iterator<Item = wit::Write>) -> Result<(), DocumentError> {
        let writes: Vec<_> = writes.collect();
        self.scope.host.documents_apply(T::COLLECTION, &writes)?;
        Ok(())
    }
}
