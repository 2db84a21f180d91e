//! Writes documents of the call's workspace.
//!
//! A write has three steps: it is counted against the call's limits, its bodies
//! are checked, and it is applied. The check needs no unit of work, so that the
//! runtime can move a long one to another thread.

use std::sync::Arc;

use super::body::check_document;
use super::documents::{DocumentHostCallResult, MAX_ID, is_id, misuse, scope};
use super::error::READ_ONLY;
use super::read_log::RepeatableQueryResult;
use super::reading::ReadKind;
use super::scope::AreaPolicy;
use super::{DocumentError, HostCallError, UnitOfWork};
use assurance_core::domain::document::DocumentWrite;
use assurance_store::documents::{self, DocumentHead};
use assurance_store::{AccessibleCollection, Error};

/// Maximum size of one document's body, in bytes.
const MAX_BODY: usize = 16 << 20;

/// Document writes to one collection that were counted against the call's
/// limits. Their bodies are not checked yet.
#[derive(Debug)]
pub struct UncheckedWrites {
    area: Arc<AreaPolicy>,
    collection: String,
    writes: Vec<DocumentWrite>,
    bytes: usize,
}

/// Document writes to one collection whose bodies were checked.
#[derive(Debug)]
pub struct CheckedWrites(UncheckedWrites);

impl UncheckedWrites {
    /// Returns the total size of the writes' bodies in bytes, which determines
    /// the time of the check.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Checks that both databases can store the bodies of the writes.
    pub fn check(self) -> DocumentHostCallResult<CheckedWrites> {
        let scope = scope(&self.area, &self.collection)?;
        for body in self.writes.iter().filter_map(body) {
            if body.len() > MAX_BODY {
                let (name, size) = (&scope.full_name, body.len());
                return misuse(format!(
                    "{name}: a document has {size} bytes; use at most {MAX_BODY} bytes"
                ));
            }
            if let Err(what) = check_document(scope, body) {
                return misuse(format!("{}: {what}", scope.full_name));
            }
        }
        Ok(CheckedWrites(self))
    }
}

impl UnitOfWork {
    /// Counts document writes against the call's limits, checks their bodies on
    /// this thread, and applies them.
    pub async fn write(
        &mut self,
        collection: &str,
        writes: Vec<DocumentWrite>,
    ) -> DocumentHostCallResult<Vec<u64>> {
        let checked = self.charge_writes(collection.to_owned(), writes)?.check()?;
        self.apply(checked).await
    }

    /// Counts document writes against the call's limits. Refuses them if the
    /// call may not write to the collection.
    pub fn charge_writes(
        &mut self,
        collection: String,
        writes: Vec<DocumentWrite>,
    ) -> DocumentHostCallResult<UncheckedWrites> {
        let area = Arc::clone(&self.spec.area);
        let scope = scope(&area, &collection)?;
        if !self.spec.writes {
            return misuse(READ_ONLY);
        }
        if !scope.own {
            return misuse(format!("{} belongs to another area", scope.full_name));
        }
        let bytes = writes.iter().filter_map(body).map(str::len).sum();
        self.charge_for(writes.len(), bytes as u64)?;
        let mut created = writes.iter().filter_map(|write| match write {
            DocumentWrite::Create { id, .. } => Some(id),
            _ => None,
        });
        if let Some(id) = created.find(|id| !is_id(id)) {
            return misuse(format!(
                "{id:?} is not a valid id; use 1 to {MAX_ID} characters without U+0000"
            ));
        }
        Ok(UncheckedWrites { area, collection, writes, bytes })
    }

    /// Applies checked document writes in order, all or none. Returns the new
    /// version of each document, 0 for a deletion.
    pub async fn apply(&mut self, checked: CheckedWrites) -> DocumentHostCallResult<Vec<u64>> {
        let CheckedWrites(UncheckedWrites { area, collection, writes, .. }) = checked;
        let scope = scope(&area, &collection)?;
        let name = &scope.full_name;
        let mut unseen = self.documents.unread(name, &writes, self.spec.locked);
        unseen.retain(|id| is_id(id));
        if !unseen.is_empty() {
            let heads = self.heads(scope, &unseen).await?;
            if !self.documents.note_heads(name, &unseen, heads) {
                return Err(HostCallError::Abort(Error::AlreadyExists));
            }
        }
        let written = self.documents.write(name, writes, self.spec.call.now);
        let (versions, undo) = written.map_err(HostCallError::Refused)?;
        if !self.spec.locked {
            return Ok(versions);
        }
        // No other write is pending: a locked call sends each write at once.
        match self.flush_with_savepoint().await {
            Ok(()) => Ok(versions),
            Err(Error::UniqueConflict { fields, .. }) => {
                self.documents.undo(undo);
                Err(HostCallError::Refused(DocumentError::UniqueConflict(fields)))
            }
            Err(error) => Err(HostCallError::Abort(error)),
        }
    }

    async fn heads(
        &mut self,
        scope: &AccessibleCollection,
        ids: &[String],
    ) -> DocumentHostCallResult<Vec<DocumentHead>> {
        let question = || format!("{} heads {ids:?}", scope.full_name);
        if let Some(RepeatableQueryResult::Heads(heads)) = self.logged_result(question) {
            return Ok(heads);
        }
        let mut lease = self.lease(ReadKind::Documents, ids.len().div_ceil(1_000)).await?;
        let heads = documents::heads(lease.connection(), self.place(scope), ids).await?;
        self.done(lease);
        self.note(question, || RepeatableQueryResult::Heads(heads.clone()));
        Ok(heads)
    }
}

/// Returns the document body that a write stores; `None` for a deletion.
fn body(write: &DocumentWrite) -> Option<&str> {
    match write {
        DocumentWrite::Create { body, .. } | DocumentWrite::Replace { body, .. } => Some(body),
        DocumentWrite::Delete { .. } => None,
    }
}
