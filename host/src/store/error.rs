//! Why the store refused, in the store's own words, and how a database's own
//! errors become them.

/// Why the store refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another transaction got there first; run the whole call again.
    #[error("the transaction lost a race and must be run again")]
    RunAgain,
    /// No such row.
    #[error("not found")]
    NotFound,
    /// The call's workspace is not there any more.
    #[error("the workspace is gone")]
    WorkspaceGone,
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
    /// The answer is larger than the call may take.
    #[error("the answer is larger than the call's limit")]
    TooLarge,
    /// The database is away.
    #[error("the database is away: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// The blob store failed.
    #[error("the blob store failed: {0}")]
    Blobs(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A stored secret does not open: written under another master key.
    #[error("a stored secret does not open: {0}")]
    Seal(#[source] crate::secrets::SealError),
    /// The database's schema could not be brought up to date.
    #[error("the database's schema could not be brought up to date: {0}")]
    Migration(#[source] sqlx::migrate::MigrateError),
    /// The database URL names no database this service knows.
    #[error("{0:?} is no database URL; sqlite:PATH or postgres://USER@HOST/NAME")]
    Url(String),
    /// Anything else the database said.
    #[error("the database failed: {0}")]
    Database(#[source] sqlx::Error),
}

impl Error {
    /// Another transaction changed what this one relied on. Run again, the
    /// call sees the change and can say so itself.
    #[must_use]
    pub fn lost_race(&self) -> bool {
        matches!(
            self,
            Self::RunAgain
                | Self::AlreadyExists
                | Self::VersionConflict(_)
                | Self::UniqueConflict { .. }
        )
    }

    /// The unique constraint or index that a statement broke, where it did.
    pub(crate) fn broken_constraint(&self) -> Option<String> {
        let Self::Database(sqlx::Error::Database(error)) = self else { return None };
        if !error.is_unique_violation() {
            return None;
        }
        error.constraint().map(str::to_owned).or_else(|| sqlite_constraint(error.message()))
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            // Who answers is no PostgreSQL, or ended in the middle of a word.
            | sqlx::Error::Protocol(_)
            | sqlx::Error::WorkerCrashed => Self::Unavailable(error),
            sqlx::Error::Database(cause) => match cause.code().as_deref() {
                Some(code) if lost_race(code) => Self::RunAgain,
                Some("AS001") => Self::KeyTaken,
                Some(code) if away(code) => Self::Unavailable(error),
                _ => Self::Database(error),
            },
            _ => Self::Database(error),
        }
    }
}

/// PostgreSQL: serialization failure, deadlock, and our own `must_match`.
/// SQLite: busy, busy recovering, stale snapshot, busy timeout, locked.
fn lost_race(code: &str) -> bool {
    matches!(code, "40001" | "40P01" | "5" | "261" | "517" | "773" | "6")
}

/// PostgreSQL: connection trouble, too many clients, shutting down, read-only
/// stand-by. SQLite: cannot open, disk full.
fn away(code: &str) -> bool {
    code.starts_with("08")
        || matches!(code, "53300" | "53100" | "57P01" | "57P02" | "57P03" | "25006" | "14" | "13")
}

/// SQLite tells the constraint only in its message: `UNIQUE constraint failed:
/// index 'name'`, or `table.column, …` for a table's own key.
fn sqlite_constraint(message: &str) -> Option<String> {
    let what = message.split_once("UNIQUE constraint failed: ")?.1;
    if let Some(quoted) = what.strip_prefix("index '") {
        return quoted.split('\'').next().map(str::to_owned);
    }
    what.split('.').next().map(|table| format!("{table}_pkey"))
}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn only_what_another_transaction_can_cause_is_run_again() {
        for lost in [Error::RunAgain, Error::AlreadyExists, Error::VersionConflict(2)] {
            assert!(lost.lost_race(), "{lost}");
        }
        let told = [Error::KeyTaken, Error::InvalidCursor, Error::LeaseLost, Error::NotFound];
        for told in told.into_iter().chain([Error::WorkspaceGone]) {
            assert!(!told.lost_race(), "{told}");
        }
    }
}
