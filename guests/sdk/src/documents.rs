//! The workspace's documents, typed.

mod all;
mod value;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::all::All;
use crate::context::Scope;
use crate::paging::Paging;
use crate::time::Timestamp;
use crate::wit::assurance::area::documents as wit;
pub use crate::wit::assurance::area::documents::Value;

/// What a collection keeps.
pub trait Document: Serialize + DeserializeOwned {
    /// The collection's name; `area.name` for another area's.
    const COLLECTION: &'static str;
}

/// Why a document could not be read or written. `?` in a handler turns it into
/// the fitting refusal; asking for what the manifest does not declare panics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentError {
    /// There is none of that id.
    NotFound,
    /// There is one of that id.
    AlreadyExists,
    /// It is at this version.
    VersionConflict(u64),
    /// Another has these fields' values in a unique index.
    UniqueConflict(Vec<String>),
    /// Altered, too old, or of another query.
    InvalidCursor,
    /// The call's limit of documents or bytes is used up.
    LimitExceeded,
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

/// A document as it is kept; reads and writes like what it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<T> {
    /// Its id.
    pub id: String,
    /// 1 at creation, one more at each change.
    pub version: u64,
    /// When it was first written.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
    /// What it holds.
    pub value: T,
}

impl<T> Stored<T> {
    /// The id of a document whose area gave it a UUID.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        self.id.parse().unwrap_or_else(|_| panic!("document id {:?} is no UUID", self.id))
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
    /// At most `limit` of them.
    pub items: Vec<T>,
    /// For the parameter `cursor` of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// The same page of something else.
    #[must_use]
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(convert).collect(), next_cursor: self.next_cursor }
    }
}

/// A collection, as one call sees it.
#[derive(Debug)]
pub struct Documents<'a, T> {
    scope: &'a Scope,
    of: PhantomData<fn() -> T>,
}

fn body(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a document that JSON can express")
}

impl<'a, T: Document> Documents<'a, T> {
    pub(crate) fn new(scope: &'a Scope) -> Self {
        Self { scope, of: PhantomData }
    }

    /// The document, or nothing.
    ///
    /// # Errors
    /// When the call's limits are used up.
    #[track_caller]
    pub fn find(&self, id: impl fmt::Display) -> Result<Option<Stored<T>>, DocumentError> {
        let found = self.scope.host.documents_get(T::COLLECTION, &id.to_string())?;
        Ok(found.map(Stored::read))
    }

    /// The document.
    ///
    /// # Errors
    /// [`DocumentError::NotFound`], and when the call's limits are used up.
    #[track_caller]
    pub fn get(&self, id: impl fmt::Display) -> Result<Stored<T>, DocumentError> {
        self.find(id)?.ok_or(DocumentError::NotFound)
    }

    /// Those that exist, in the order of the ids.
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

    /// A question about the collection; without more, all of it, newest first
    /// for time-ordered ids.
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

    /// Keeps a new document.
    ///
    /// # Errors
    /// [`DocumentError::AlreadyExists`], [`DocumentError::UniqueConflict`].
    #[track_caller]
    pub fn create(&self, id: impl fmt::Display, value: &T) -> Result<(), DocumentError> {
        self.write(wit::Write::Create((id.to_string(), body(value)))).map(drop)
    }

    /// Keeps many new documents at once.
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
        let writes: Vec<_> = documents
            .into_iter()
            .map(|(id, value)| wit::Write::Create((id.to_string(), body(value))))
            .collect();
        self.scope.host.documents_apply(T::COLLECTION, &writes)?;
        Ok(())
    }

    /// Keeps what was changed in a document since it was read.
    ///
    /// # Errors
    /// [`DocumentError::VersionConflict`] where it was changed meanwhile.
    #[track_caller]
    pub fn replace(&self, document: &mut Stored<T>) -> Result<(), DocumentError> {
        let write = wit::Write::Replace((
            document.id.clone(),
            Some(document.version),
            body(&document.value),
        ));
        document.version = self.write(write)?;
        document.updated_at = self.scope.now();
        Ok(())
    }

    /// Keeps what was changed in many documents since they were read.
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
        let writes: Vec<_> = documents
            .into_iter()
            .map(|document| {
                let version = Some(document.version);
                wit::Write::Replace((document.id.clone(), version, body(&document.value)))
            })
            .collect();
        self.scope.host.documents_apply(T::COLLECTION, &writes)?;
        Ok(())
    }

    /// Removes many documents as they were read.
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
        let writes: Vec<_> = documents
            .into_iter()
            .map(|document| wit::Write::Delete((document.id.clone(), Some(document.version))))
            .collect();
        self.scope.host.documents_apply(T::COLLECTION, &writes)?;
        Ok(())
    }

    /// Removes a document as it was read.
    ///
    /// # Errors
    /// [`DocumentError::VersionConflict`] where it was changed meanwhile.
    #[track_caller]
    pub fn delete(&self, document: &Stored<T>) -> Result<(), DocumentError> {
        self.write(wit::Write::Delete((document.id.clone(), Some(document.version)))).map(drop)
    }

    #[track_caller]
    fn write(&self, write: wit::Write) -> Result<u64, DocumentError> {
        let versions =
            self.scope.host.documents_apply(T::COLLECTION, std::slice::from_ref(&write))?;
        Ok(versions.first().copied().unwrap_or_default())
    }
}

/// A question about a collection, over declared fields.
#[derive(Debug)]
#[must_use]
pub struct Query<'a, T> {
    scope: &'a Scope,
    of: PhantomData<fn() -> T>,
    query: wit::Query,
}

impl<'a, T: Document> Query<'a, T> {
    fn test(mut self, fields: &[&str], test: wit::Test) -> Self {
        let fields = fields.iter().map(|&field| field.to_owned()).collect();
        self.query.conditions.push(wit::Condition { fields, test });
        self
    }

    /// The field has this value.
    pub fn equals(self, field: &str, value: impl Into<Value>) -> Self {
        self.test(&[field], wit::Test::Equals(value.into()))
    }

    /// The field has this value, where one is given.
    pub fn equals_if(self, field: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.equals(field, value),
            None => self,
        }
    }

    /// The field has one of these values.
    pub fn one_of(self, field: &str, values: impl IntoIterator<Item = impl Into<Value>>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.test(&[field], wit::Test::OneOf(values))
    }

    /// The field lies between the bounds, the upper one excluded.
    pub fn range(self, field: &str, from: Option<Value>, below: Option<Value>) -> Self {
        self.test(&[field], wit::Test::Range((from, below)))
    }

    /// The field's text begins so.
    pub fn prefix(self, field: &str, text: &str) -> Self {
        self.test(&[field], wit::Test::Prefix(text.to_owned()))
    }

    /// One of the fields' texts contains this, case ignored.
    pub fn contains(self, fields: &[&str], text: &str) -> Self {
        self.test(fields, wit::Test::Contains(text.to_owned()))
    }

    fn order(mut self, field: &str, descending: bool) -> Self {
        self.query.order.push(wit::Order { field: field.to_owned(), descending });
        self
    }

    /// Smallest first.
    pub fn ascending(self, field: &str) -> Self {
        self.order(field, false)
    }

    /// Largest first.
    pub fn descending(self, field: &str) -> Self {
        self.order(field, true)
    }

    /// At most so many; 50 where nothing is said.
    pub fn limit(mut self, limit: u32) -> Self {
        self.query.limit = limit;
        self
    }

    /// From where the page that gave this cursor ended.
    pub fn cursor(mut self, cursor: Option<String>) -> Self {
        if let Some(cursor) = cursor {
            self.query.start = wit::Start::Cursor(cursor);
        }
        self
    }

    /// The page that a request asks for.
    pub fn paging<const LIMIT: u32, const MAX_LIMIT: u32, const MAX_CURSOR: u32>(
        self,
        paging: Paging<LIMIT, MAX_LIMIT, MAX_CURSOR>,
    ) -> Self {
        self.limit(paging.limit).cursor(paging.cursor)
    }

    /// After the document of this id.
    pub fn after(mut self, id: Option<impl fmt::Display>) -> Self {
        if let Some(id) = id {
            self.query.start = wit::Start::After(id.to_string());
        }
        self
    }

    /// A page of them.
    ///
    /// # Errors
    /// [`DocumentError::InvalidCursor`], and when the call's limits are used up.
    #[track_caller]
    pub fn page(self) -> Result<Page<Stored<T>>, DocumentError> {
        let page = self.scope.host.documents_find(&self.query)?;
        Ok(Page {
            items: page.documents.into_iter().map(Stored::read).collect(),
            next_cursor: page.next,
        })
    }

    /// Those on the first page.
    ///
    /// # Errors
    /// As for [`page`](Self::page).
    #[track_caller]
    pub fn list(self) -> Result<Vec<Stored<T>>, DocumentError> {
        Ok(self.page()?.items)
    }

    /// Deletes those on the first page, and returns how many there were. A job
    /// that deletes all of them runs again until there were none.
    ///
    /// # Errors
    /// As for [`page`](Self::page).
    #[track_caller]
    pub fn delete_page(self) -> Result<usize, DocumentError> {
        let documents = Documents::<T>::new(self.scope);
        let page = self.list()?;
        documents.delete_all(&page)?;
        Ok(page.len())
    }

    /// All of them, page by page as they are taken; the limit is a page's.
    ///
    /// An error is the last item.
    pub fn all(self) -> All<'a, T> {
        All::of(self)
    }

    /// The first of them.
    ///
    /// # Errors
    /// As for [`page`](Self::page).
    #[track_caller]
    pub fn first(self) -> Result<Option<Stored<T>>, DocumentError> {
        Ok(self.limit(1).list()?.pop())
    }

    /// How many there are, whatever the limit.
    ///
    /// # Errors
    /// When the call's limits are used up.
    #[track_caller]
    pub fn count(self) -> Result<u64, DocumentError> {
        Ok(self.scope.host.documents_count(T::COLLECTION, &self.query.conditions, None)?)
    }

    /// How many there are, or `most` where there are more: quick where the
    /// whole number would take long, for limits and for "more than 1,000".
    ///
    /// # Errors
    /// When the call's limits are used up.
    #[track_caller]
    pub fn count_up_to(self, most: u32) -> Result<u64, DocumentError> {
        Ok(self.scope.host.documents_count(T::COLLECTION, &self.query.conditions, Some(most))?)
    }

    /// How many there are for each combination of the fields' values.
    ///
    /// # Errors
    /// When the call's limits are used up.
    #[track_caller]
    pub fn count_by(self, fields: &[&str]) -> Result<Vec<(Vec<Value>, u64)>, DocumentError> {
        let fields: Vec<String> = fields.iter().map(|&field| field.to_owned()).collect();
        let groups =
            self.scope.host.documents_count_by(T::COLLECTION, &self.query.conditions, &fields)?;
        Ok(groups.into_iter().map(|group| (group.values, group.count)).collect())
    }
}
