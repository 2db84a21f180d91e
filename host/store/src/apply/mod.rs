//! What a call leaves behind, written in one batch.
//!
//! PostgreSQL takes it as one statement, which without a transaction around it
//! is one round trip for everything a write-only call does; SQLite as one
//! script that is a single message to its thread. Deletions come before
//! changes, and changes before additions, so that what goes makes room in a
//! unique index for what comes.

mod postgres;
mod sqlite;

use super::blobs::StoredBlob;
use super::connection::{Connection, Raw};
use super::error::Error;
use super::idempotency::StoredReply;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::job::{NewJob, RequestedDelivery};
use assurance_core::domain::sealed::StoredSecret;
use assurance_core::domain::time::Timestamp;

/// Everything to be written for one workspace.
#[derive(Clone, Debug)]
pub struct Effects {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The area that owns the secrets and blobs.
    pub area: String,
    /// When it happens.
    pub now: Timestamp,
    /// Documents that were read before and must still be the same.
    pub seen: Vec<ReadDocument>,
    /// New documents.
    pub inserts: Vec<Insert>,
    /// Changed documents.
    pub updates: Vec<Update>,
    /// Documents that go.
    pub deletes: Vec<Delete>,
    /// Jobs for the queue.
    pub jobs: Vec<NewJob>,
    /// Jobs that deliver an event, if a document of the workspace requests it.
    pub deliveries: Vec<RequestedDelivery>,
    /// Secrets by name, sealed; nothing: forgotten.
    pub secrets: Vec<(String, Option<StoredSecret>)>,
    /// Blobs by name; nothing: forgotten.
    pub blobs: Vec<(String, Option<StoredBlob>)>,
    /// The answer kept for a retry.
    pub reply: Option<StoredReply>,
}

/// A document that was read.
#[derive(Clone, Debug)]
pub struct ReadDocument {
    /// `area.name`.
    pub collection: String,
    /// Which.
    pub id: String,
    /// At which version it was; nothing: there was none.
    pub version: Option<u64>,
}

/// A new document.
#[derive(Clone, Debug)]
pub struct Insert {
    /// `area.name`.
    pub collection: String,
    /// Which.
    pub id: String,
    /// 1, but for one that was changed in the call that made it.
    pub version: u64,
    /// A JSON object.
    pub body: String,
}

/// A changed document.
#[derive(Clone, Debug)]
pub struct Update {
    /// `area.name`.
    pub collection: String,
    /// Which.
    pub id: String,
    /// At which version it must be.
    pub from: u64,
    /// At which version it is then.
    pub to: u64,
    /// Creation time; for a document that was deleted and created again, the call's time.
    pub created_at: Timestamp,
    /// A JSON object.
    pub body: String,
}

/// A document that goes.
#[derive(Clone, Debug)]
pub struct Delete {
    /// `area.name`.
    pub collection: String,
    /// Which.
    pub id: String,
    /// At which version it must be.
    pub from: u64,
}

impl Effects {
    /// Nothing yet.
    #[must_use]
    pub fn new(workspace: WorkspaceId, area: &str, now: Timestamp) -> Self {
        Self {
            workspace,
            area: area.to_owned(),
            now,
            seen: Vec::new(),
            inserts: Vec::new(),
            updates: Vec::new(),
            deletes: Vec::new(),
            jobs: Vec::new(),
            deliveries: Vec::new(),
            secrets: Vec::new(),
            blobs: Vec::new(),
            reply: None,
        }
    }

    /// Whether there is nothing to write, whatever was read.
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
    }
}

/// In which transaction effects are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransactionKind {
    /// One of its own: the statement is committed when it has ended.
    Itself,
    /// One that the caller has begun.
    Transaction {
        /// It holds the workspace's gate.
        gated: bool,
    },
}

/// Writes it all. [`Error::RunAgain`] if a document is not as it was read,
/// [`Error::KeyTaken`] if the idempotency key is stored already,
/// [`Error::GateBusy`] if another call holds or waits for the workspace's gate;
/// a broken unique index is explained by `indexes::explain`.
///
/// PostgreSQL asserts in the statement that it is part of a transaction, or
/// not, as `within` says.
///
/// Returns the number of requested deliveries that were enqueued.
pub async fn apply(
    connection: &mut Connection,
    effects: Effects,
    within: TransactionKind,
) -> Result<u64, Error> {
    if effects.is_empty() {
        return Ok(0);
    }
    match connection.raw() {
        Raw::Sqlite(_) => sqlite::apply(connection, &effects).await,
        Raw::Postgres(_) => postgres::apply(connection, effects, within).await,
    }
}

/// Writes it all to SQLite, in a transaction that the caller has begun.
///
/// # Errors
/// As [`apply`].
pub(crate) async fn apply_on_sqlite(
    connection: &mut Connection,
    effects: &Effects,
) -> Result<u64, Error> {
    sqlite::apply(connection, effects).await
}
