//! Errors of the store, and their mapping from database errors.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use metrics::{counter, describe_counter};
use sqlx::migrate::MigrateError;

/// SQLSTATE of a statement that PostgreSQL refused for a lack of privileges.
const INSUFFICIENT_PRIVILEGE: &str = "42501";
/// Metric: errors of the database.
const ERRORS: &str = "assurance_database_errors_total";

/// Describes the metric of database errors, with a series for each kind.
pub(super) fn describe_metrics() {
    describe_counter!(ERRORS, "Errors of the database, by kind (unavailable, full, other)");
    for kind in ["unavailable", "full", "other"] {
        counter!(ERRORS, "kind" => kind).increment(0);
    }
}

/// Why the store refused an operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A write conflict with another transaction; the whole call must run
    /// again.
    #[error("write conflict with another transaction; the call must run again")]
    RunAgain,
    /// Another call holds the workspace's gate (its lock against other calls)
    /// or waits for it.
    #[error("another call holds the workspace's gate")]
    GateBusy,
    /// The requested row does not exist.
    #[error("not found")]
    NotFound,
    /// The call's workspace was deleted.
    #[error("the workspace was deleted")]
    WorkspaceGone,
    /// A row with this id, or with another unique name, exists.
    #[error("already exists")]
    AlreadyExists,
    /// The document has this version, not the one that the write expects.
    #[error("the document has version {0}")]
    VersionConflict(u64),
    /// Another document has the same values in a unique index.
    #[error("{collection}: another document has the same {}", fields.join(", "))]
    UniqueConflict {
        /// Full name of the collection.
        collection: String,
        /// Fields of the unique index.
        fields: Vec<String>,
    },
    /// The page cursor was altered, or belongs to another query.
    #[error("the cursor does not belong to this query")]
    InvalidCursor,
    /// The job no longer has the lease of the run that ends.
    #[error("the job has another lease now")]
    LeaseLost,
    /// A response is already stored for the idempotency key.
    #[error("a response is already stored for the idempotency key")]
    KeyTaken,
    /// The result of a query exceeds the call's size limit.
    #[error("the result is larger than the call's limit")]
    TooLarge,
    /// The database does not respond, or refuses temporarily.
    #[error("the database is unavailable: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// The database's disk, or its quota, is full.
    #[error("the database's disk is full: {0}")]
    Full(#[source] sqlx::Error),
    /// Too many jobs of an area, which is named, wait in the workspace.
    #[error("too many jobs of {0} wait in the workspace (jobs.max_waiting_per_area)")]
    QueueFull(String),
    /// The area or workspace has used its storage quota.
    #[error(transparent)]
    OverQuota(super::OverQuota),
    /// The blob store failed.
    #[error("the blob store failed: {0}")]
    Blobs(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A stored secret cannot be decrypted: it was encrypted under another
    /// master key.
    #[error("a stored secret cannot be decrypted: {0}")]
    Seal(#[source] assurance_core::secrets::DecryptionError),
    /// The database schema could not be migrated.
    #[error("{}", refused_schema(.0))]
    // The message has the cause, so it is not repeated as the source.
    Migration(MigrateError),
    /// The database has only the migrations of an older release.
    #[error(
        "this release needs migration {needed} of the database, which has {applied}; start the \
         service of this release first"
    )]
    OlderSchema {
        /// Number of the newest migration of this release.
        needed: i64,
        /// Number of the newest migration that is applied to the database.
        applied: i64,
    },
    /// The database URL has an unsupported form.
    // The URL may have a password.
    #[error("the database URL is not valid; use sqlite:PATH or postgres://USER@HOST/NAME")]
    Url,
    /// PostgreSQL did not receive the session settings that this process gives
    /// each connection.
    #[error(
        "PostgreSQL does not have the settings that this host gives each connection, without which \
         its transactions are not serializable: a pooler between them, like PgBouncer, drops them; \
         connect database.url to PostgreSQL itself, for the host has a pool of its own \
         (database.max_connections)"
    )]
    SettingsDropped,
    /// Any other error that the database returned.
    #[error("the database failed: {0}")]
    Database(#[source] sqlx::Error),
}

impl Error {
    /// Returns whether the error is a write conflict. When the call runs again,
    /// it sees the other transaction's change.
    #[must_use]
    pub fn is_write_conflict(&self) -> bool {
        matches!(
            self,
            Self::RunAgain
                | Self::GateBusy
                | Self::AlreadyExists
                | Self::VersionConflict(_)
                | Self::UniqueConflict { .. }
        )
    }

    /// Returns whether only one statement failed, so that its transaction can
    /// go on. After other errors SQLite may have rolled back the whole
    /// transaction.
    pub(crate) fn is_of_the_statement(&self) -> bool {
        match self {
            Self::Database(sqlx::Error::Database(error)) => error.is_unique_violation(),
            error => error.is_write_conflict() || matches!(error, Self::KeyTaken | Self::LeaseLost),
        }
    }

    /// Returns whether PostgreSQL ended a transaction because a statement or an
    /// idle time in it exceeded a timeout of the session, or an administrator
    /// canceled it.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        let Self::Unavailable(error) = self else { return false };
        matches!(database_code(error).as_deref(), Some("25P03" | "57014"))
    }

    /// Returns whether the task or thread that ran the statement ended without a
    /// result, for example because it panicked.
    #[must_use]
    pub fn is_crash(&self) -> bool {
        matches!(self, Self::Unavailable(sqlx::Error::WorkerCrashed))
    }

    /// Returns the kind under which the metric counts the error; `None` if it
    /// is no error of the database, but a conflict that the caller handles.
    fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Unavailable(_) => Some("unavailable"),
            Self::Full(_) => Some("full"),
            Self::Database(sqlx::Error::RowNotFound) => None,
            Self::Database(sqlx::Error::Database(error)) if error.is_unique_violation() => None,
            Self::Database(_) => Some("other"),
            _ => None,
        }
    }

    /// Returns whether no connection became free in time.
    pub(crate) fn is_pool_timeout(&self) -> bool {
        matches!(self, Self::Unavailable(sqlx::Error::PoolTimedOut))
    }

    /// Returns the name of the violated unique constraint or index, if any.
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
        let error = Self::classified(error);
        if let Some(kind) = error.kind() {
            counter!(ERRORS, "kind" => kind).increment(1);
        }
        error
    }
}

impl Error {
    fn classified(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            // The server does not speak PostgreSQL's protocol, or the
            // connection broke inside a message.
            | sqlx::Error::Protocol(_)
            | sqlx::Error::WorkerCrashed => Self::Unavailable(error),
            sqlx::Error::Database(cause) => {
                let code = cause.code().map(Cow::into_owned);
                of_code(code.as_deref(), error)
            }
            _ => Self::Database(error),
        }
    }
}

/// Returns `otherwise` if a statement changed no row.
pub(super) fn changed_or(rows: u64, otherwise: Error) -> Result<(), Error> {
    if rows == 0 { Err(otherwise) } else { Ok(()) }
}

/// Parses the text of a database column that only this crate writes.
pub(super) fn parsed<T: FromStr<Err = String>>(column: &str, text: &str) -> Result<T, Error> {
    text.parse().map_err(|problem| unreadable(column, problem))
}

/// Returns the error of a column (`table.column`) with a value that this
/// release cannot read.
pub(super) fn unreadable(column: &str, problem: impl Display) -> Error {
    Error::Database(sqlx::Error::Decode(format!("{column}: {problem}").into()))
}

/// Returns the message of a failed migration. A migration that this release
/// does not contain was applied by a newer release.
fn refused_schema(cause: &MigrateError) -> String {
    match cause {
        MigrateError::VersionMissing(version) => format!(
            "the database is of a newer release (it has migration {version}, which this release \
             does not know); start that release, or restore a backup from before the upgrade"
        ),
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _)
            if database_code(cause).as_deref() == Some(INSUFFICIENT_PRIVILEGE) =>
        {
            format!(
                "the database's schema could not be migrated: {cause}; the role in database.url \
                 needs USAGE and CREATE on the schema and must own the service's tables \
                 (host/OPERATING.md, \"Database\")"
            )
        }
        other => format!("the database's schema could not be migrated: {other}"),
    }
}

/// Returns the code of an error that the database returned; `None` for other
/// errors.
pub(super) fn database_code(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error()?.code()
}

/// Returns the meaning of an error with this code for the caller.
fn of_code(code: Option<&str>, error: sqlx::Error) -> Error {
    match code {
        // An SQLSTATE has five characters (PostgreSQL, appendix A).
        Some(code) if code.len() == 5 => of_sqlstate(code, error),
        // The low byte of an extended result code is the primary code (SQLite,
        // rescode).
        Some(code) => of_sqlite_code(code.parse::<u32>().unwrap_or_default() & 0xff, error),
        None => Error::Database(error),
    }
}

fn of_sqlstate(code: &str, error: sqlx::Error) -> Error {
    match code {
        // Serialization failure, deadlock, and the store's own `must_match`.
        "40001" | "40P01" => Error::RunAgain,
        "AS001" => Error::KeyTaken,
        "AS003" => Error::GateBusy,
        "AS004" => Error::LeaseLost,
        "53100" => Error::Full(error),
        // Connection errors; refused logins, which only attempts to connect meet; out of memory,
        // connections or other resources.
        _ if ["08", "28", "53"].iter().any(|class| code.starts_with(class)) => {
            Error::Unavailable(error)
        }
        // In order: not in the expected transaction (the store's own code, PostgreSQL's);
        // read-only session or standby; idle transaction timeout; lock timeout; canceled,
        // for example by the statement timeout; shutdown; crash; starting up;
        // idle session timeout; disk errors.
        "AS002" | "25P02" | "25006" | "25P03" | "55P03" | "57014" | "57P01" | "57P02" | "57P03"
        | "57P05" | "58000" | "58030" => Error::Unavailable(error),
        _ => Error::Database(error),
    }
}

fn of_sqlite_code(primary: u32, error: sqlx::Error) -> Error {
    match primary {
        // Busy (also during recovery or with a stale snapshot); locked.
        5 | 6 => Error::RunAgain,
        13 => Error::Full(error),
        // Out of memory, read-only, disk error, corrupt, cannot open, not a
        // database.
        7 | 8 | 10 | 11 | 14 | 26 => Error::Unavailable(error),
        _ => Error::Database(error),
    }
}

/// Extracts the constraint from SQLite's message: `UNIQUE constraint failed:
/// index 'name'`, or `table.column, …` for a table's primary key.
fn sqlite_constraint(message: &str) -> Option<String> {
    let what = message.split_once("UNIQUE constraint failed: ")?.1;
    if let Some(quoted) = what.strip_prefix("index '") {
        return quoted.split('\'').next().map(str::to_owned);
    }
    // A list of `table.column`; the names of collections' tables contain dots.
    let (table, _) = what.split(", ").next()?.rsplit_once('.')?;
    Some(format!("{table}_pkey"))
}

#[cfg(test)]
mod tests {
    use super::{Error, of_code};

    #[test]
    fn a_database_in_trouble_is_unavailable_and_a_full_one_is_full() {
        let of = |code| of_code(code, sqlx::Error::WorkerCrashed);
        let codes = [
            "53200", "53300", "57014", "58030", "25P03", "55P03", "08006", "AS002", "25P02",
            "28P01",
        ];
        for code in codes.into_iter().chain(["10", "778", "7", "8", "264", "11", "14", "26"]) {
            assert!(matches!(of(Some(code)), Error::Unavailable(_)), "{code}");
        }
        for code in ["53100", "13"] {
            assert!(matches!(of(Some(code)), Error::Full(_)), "{code}");
        }
        for code in ["40001", "40P01", "5", "261", "517", "6", "262"] {
            assert!(matches!(of(Some(code)), Error::RunAgain), "{code}");
        }
        for code in [Some("23505"), Some("1"), Some("42P01"), Some("x"), None] {
            assert!(matches!(of(code), Error::Database(_)), "{code:?}");
        }
    }

    #[test]
    fn errors_of_the_database_are_counted_and_conflicts_are_not() {
        let of = |error: sqlx::Error| Error::from(error).kind();
        assert_eq!(of(sqlx::Error::WorkerCrashed), Some("unavailable"));
        assert_eq!(of(sqlx::Error::ColumnNotFound("id".into())), Some("other"));
        assert_eq!(of(sqlx::Error::RowNotFound), None);
        assert_eq!(Error::RunAgain.kind(), None);
    }

    #[test]
    fn an_older_release_says_that_the_database_is_of_a_newer_one() {
        let newer = sqlx::migrate::MigrateError::VersionMissing(99);
        let text = Error::Migration(newer).to_string();
        assert!(text.contains("a newer release (it has migration 99"), "{text}");
        assert!(text.contains("restore a backup"), "{text}");
    }

    #[test]
    fn only_what_another_transaction_can_cause_is_run_again() {
        for lost in [Error::RunAgain, Error::AlreadyExists, Error::VersionConflict(2)] {
            assert!(lost.is_write_conflict(), "{lost}");
        }
        let told = [Error::KeyTaken, Error::InvalidCursor, Error::LeaseLost, Error::NotFound];
        for told in told.into_iter().chain([Error::WorkspaceGone]) {
            assert!(!told.is_write_conflict(), "{told}");
        }
    }
}
