//! Writes the effects of a call to the database in one batch.
//!
//! On PostgreSQL the batch is one statement. A call that only writes needs no
//! transaction around it, and so costs one round trip. On SQLite the batch is
//! sent to the connection's thread as scripts of a few statements, one message
//! each. Every collection has a table of its own, so there is one statement (or
//! part of it) for each collection. Deletions come before changes, and changes
//! before insertions, so that the values of deleted documents are free in unique
//! indexes.

pub(crate) mod postgres;
pub(crate) mod sqlite;

use super::blobs::StoredBlob;
use super::connection::{Connection, DriverConnection};
use super::error::Error;
use super::idempotency::StoredReply;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::job::{EventDeliveryJobTemplate, JobRunEnd, NewJob};
use assurance_core::domain::sealed::StoredSecret;
use assurance_core::domain::time::Timestamp;

/// Maximum number of rows that a call may insert to be written together with
/// others.
const MOST_INSERTED: usize = 8;
/// Maximum bytes of documents of a call that is written together with others.
const MOST_INSERTED_BYTES: usize = 65_536;

/// All effects of one call, to be written together.
#[derive(Clone, Debug)]
pub struct Effects {
    /// Workspace of the call.
    pub workspace: WorkspaceId,
    /// Name of the area that owns the secrets and blobs.
    pub area: String,
    /// Time of the call; the written rows get it as time of creation or change.
    pub now: Timestamp,
    /// Documents that the call read; writing fails if one of them has changed.
    pub seen: Vec<ReadDocument>,
    /// Blobs that the call read. On SQLite, writing fails if one of them has
    /// changed; on PostgreSQL, the call's transaction isolates them.
    pub seen_blobs: Vec<ReadBlob>,
    /// Documents to create.
    pub inserts: Vec<DocumentInsert>,
    /// Documents to replace.
    pub updates: Vec<DocumentUpdate>,
    /// Documents to delete.
    pub deletes: Vec<DocumentDelete>,
    /// Jobs to add to the queue.
    pub jobs: Vec<NewJob>,
    /// Jobs that deliver an event if a document of the workspace requests it.
    pub deliveries: Vec<EventDeliveryJobTemplate>,
    /// Encrypted secrets to store, by name; `None` deletes the secret.
    pub secrets: Vec<(String, Option<StoredSecret>)>,
    /// Blobs to store, by name; `None` deletes the blob.
    pub blobs: Vec<(String, Option<StoredBlob>)>,
    /// Response to store for the request's idempotency key.
    pub reply: Option<StoredReply>,
    /// New states of the jobs that the call runs.
    pub job_ends: Vec<JobRunEnd>,
}

/// A document that the call read, or found missing.
#[derive(Clone, Debug)]
pub struct ReadDocument {
    /// Full name of the collection, `area.name`.
    pub collection: String,
    /// Id of the document.
    pub id: String,
    /// Version that the call read; `None` if the document did not exist.
    pub version: Option<u64>,
}

/// A blob that the call read, or found missing.
#[derive(Clone, Debug)]
pub struct ReadBlob {
    /// Area that owns the blob.
    pub area: String,
    /// Name of the blob.
    pub name: String,
    /// Name of the blob store's object with the content, which each write of
    /// the blob changes; `None` if there was no blob.
    pub object: Option<String>,
}

/// A document to create.
#[derive(Clone, Debug)]
pub struct DocumentInsert {
    /// Full name of the collection, `area.name`.
    pub collection: String,
    /// Id of the document.
    pub id: String,
    /// Version of the new document: 1, or more if the call changed it again or
    /// deleted another one with this id.
    pub version: u64,
    /// Content of the new document, a JSON object.
    pub body: String,
}

/// A document to replace.
#[derive(Clone, Debug)]
pub struct DocumentUpdate {
    /// Full name of the collection, `area.name`.
    pub collection: String,
    /// Id of the document.
    pub id: String,
    /// Version that the stored document must have; otherwise the write fails.
    pub from: u64,
    /// Version of the document after the write.
    pub to: u64,
    /// Time of the document's creation. For a document that was deleted and
    /// created again in this call, the time of the call.
    pub created_at: Timestamp,
    /// New content of the document, a JSON object.
    pub body: String,
}

/// A document to delete.
#[derive(Clone, Debug)]
pub struct DocumentDelete {
    /// Full name of the collection, `area.name`.
    pub collection: String,
    /// Id of the document.
    pub id: String,
    /// Version that the stored document must have; otherwise the write fails.
    pub from: u64,
}

impl Effects {
    /// Creates an empty set of effects.
    #[must_use]
    pub fn new(workspace: WorkspaceId, area: &str, now: Timestamp) -> Self {
        Self {
            workspace,
            area: area.to_owned(),
            now,
            seen: Vec::new(),
            seen_blobs: Vec::new(),
            inserts: Vec::new(),
            updates: Vec::new(),
            deletes: Vec::new(),
            jobs: Vec::new(),
            deliveries: Vec::new(),
            secrets: Vec::new(),
            blobs: Vec::new(),
            reply: None,
            job_ends: Vec::new(),
        }
    }

    /// Returns what decides the text of the statements that write these effects,
    /// if they only insert a few rows: such effects of several calls are written
    /// together. Empty for others.
    pub(super) fn insertion_shape(&self) -> String {
        let is_insertion = self.seen.is_empty()
            && self.seen_blobs.is_empty()
            && self.updates.is_empty()
            && self.deletes.is_empty()
            && self.secrets.is_empty()
            && self.blobs.is_empty()
            && self.job_ends.is_empty();
        let rows = self.inserts.len() + self.jobs.len() + self.deliveries.len();
        let bytes: usize = self.inserts.iter().map(|one| one.body.len()).sum();
        if !is_insertion || rows > MOST_INSERTED || bytes > MOST_INSERTED_BYTES {
            return String::new();
        }
        let mut shape = String::from(if self.reply.is_some() { "reply" } else { "-" });
        let inserts = self.inserts.iter().map(|one| one.collection.as_str());
        let jobs = self.jobs.iter().map(|one| if one.is_merged() { "merged" } else { "job" });
        let deliveries = self.deliveries.iter();
        let requests = deliveries.flat_map(|one| [&one.requests.collection, &one.requests.member]);
        for part in inserts.chain(jobs).chain(requests.map(String::as_str)) {
            shape.push(' ');
            shape.push_str(part);
        }
        shape
    }

    /// Returns whether there is nothing to write. What was read does not
    /// count.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inserts.is_empty()
            && self.updates.is_empty()
            && self.deletes.is_empty()
            && self.jobs.is_empty()
            && self.deliveries.is_empty()
            && self.secrets.is_empty()
            && self.blobs.is_empty()
            && self.reply.is_none()
            && self.job_ends.is_empty()
    }
}

/// How the effects of a call are committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AutocommitOrTransaction {
    /// The statement that writes the effects is a transaction by itself,
    /// committed when it ends.
    Autocommit,
    /// The effects are part of a transaction that the caller has begun.
    Transaction {
        /// Whether the transaction holds the workspace's gate, a lock against
        /// other calls of the workspace.
        gated: bool,
    },
}

/// Writes all effects. Returns [`Error::RunAgain`] if a document has changed
/// since it was read, [`Error::KeyTaken`] if a response is already stored for
/// the idempotency key, [`Error::LeaseLost`] if a job does not have the run's
/// lease any more, and [`Error::GateBusy`] if another call holds the
/// workspace's gate or waits for it. `indexes::explain` converts the error of a
/// violated unique index.
///
/// On PostgreSQL, the statement asserts that it runs inside or outside a
/// transaction, as `within` requires.
///
/// Returns the number of requested deliveries that were enqueued. In a
/// transaction that the caller has begun, these are all: its snapshot may be
/// older than a request for the event. The subscriber checks the requests again
/// when it receives the event.
pub async fn apply(
    connection: &mut Connection,
    mut effects: Effects,
    within: AutocommitOrTransaction,
) -> Result<u64, Error> {
    if effects.is_empty() {
        return Ok(0);
    }
    let unchecked = match within {
        AutocommitOrTransaction::Autocommit => Vec::new(),
        AutocommitOrTransaction::Transaction { .. } => std::mem::take(&mut effects.deliveries),
    };
    let enqueued = unchecked.len() as u64;
    effects.jobs.extend(unchecked.into_iter().map(|delivery| delivery.job));
    match connection.raw() {
        DriverConnection::Sqlite(_) => {
            Ok(enqueued + sqlite::apply(connection, &[&effects], "").await?)
        }
        DriverConnection::Postgres(_) => {
            Ok(enqueued + postgres::apply(connection, &[&effects], within).await?)
        }
    }
}
