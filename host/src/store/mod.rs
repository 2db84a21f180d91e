//! Storage: the only module that knows sqlx.

/// Why the store refused, in the store's own words.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another transaction got there first; run the whole call again.
    #[error("the transaction lost a race and must be run again")]
    RunAgain,
    /// No such row.
    #[error("not found")]
    NotFound,
    /// A row of that id exists.
    #[error("already exists")]
    AlreadyExists,
    /// The row is at this version.
    #[error("the document is at version {0}")]
    VersionConflict(u64),
    /// Another document has these values.
    #[error("{collection}: another document has the same {}", fields.join(", "))]
    UniqueConflict {
        /// The collection's full name.
        collection: String,
        /// The unique index's fields.
        fields: Vec<String>,
    },
    /// The cursor was altered, or belongs to another query.
    #[error("the cursor is not one of this query")]
    InvalidCursor,
    /// Another worker has the job now.
    #[error("the job's lease was lost")]
    LeaseLost,
    /// The idempotency key is stored already.
    #[error("the idempotency key is taken")]
    KeyTaken,
    /// The database is away.
    #[error("the database is away: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// Anything else the database said.
    #[error("the database failed: {0}")]
    Database(#[source] sqlx::Error),
}
