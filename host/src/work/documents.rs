//! Documents of the workspace.

use super::{DocumentError, Fault, UnitOfWork};
use crate::domain::document::{Condition, Document, Group, Page, Query, Write};

type Answer<T> = Result<T, Fault<DocumentError>>;

impl UnitOfWork {
    /// The document, or nothing.
    pub async fn get(&mut self, _collection: &str, _id: &str) -> Answer<Option<Document>> {
        Err(Fault::Refused(DocumentError::NotFound))
    }

    /// Those that exist, in the order of the ids.
    pub async fn get_many(&mut self, _collection: &str, _ids: &[String]) -> Answer<Vec<Document>> {
        Err(Fault::Refused(DocumentError::NotFound))
    }

    /// One page of the documents that match.
    pub async fn query(&mut self, _query: &Query) -> Answer<Page> {
        Err(Fault::Refused(DocumentError::NotFound))
    }

    /// How many documents match.
    pub async fn count(&mut self, _collection: &str, _conditions: &[Condition]) -> Answer<u64> {
        Err(Fault::Refused(DocumentError::NotFound))
    }

    /// How many documents match, for each combination of the fields' values.
    pub async fn count_by(
        &mut self,
        _collection: &str,
        _conditions: &[Condition],
        _fields: &[String],
    ) -> Answer<Vec<Group>> {
        Err(Fault::Refused(DocumentError::NotFound))
    }

    /// Applies the writes in order; the new version of each, 0 for a deletion.
    pub async fn write(&mut self, _collection: &str, _writes: Vec<Write>) -> Answer<Vec<u64>> {
        Err(Fault::Refused(DocumentError::NotFound))
    }
}
