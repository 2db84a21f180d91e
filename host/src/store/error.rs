//! Why the store refused, in the store's own words, and how a database's own
//! errors become them.

/// Why the store refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another transaction got there first; run the whole call again.
    #[error("the transaction lost a race and must be run again")]
    RunAgain,
    /// Another call of the workspace holds its gate, or waits for it.
    #[error("another call of the workspace has to come first")]
    GateBusy,
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
    /// The database does not answer, or refuses for the moment.
    #[error("the database is unavailable: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// The database's disk, or its quota, is full.
    #[error("the database's disk is full: {0}")]
    Full(#[source] sqlx::Error),
    /// The area or the workspace keeps as much as it may.
    #[error(transparent)]
    OverQuota(super::OverQuota),
    /// The blob store failed.
    #[error("the blob store failed: {0}")]
    Blobs(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A stored secret does not open: written under another master key.
    #[error("a stored secret does not open: {0}")]
    Seal(#[source] crate::secrets::SealError),
    /// The database's schema could not be brought up to date.
    #[error("{}", refused_schema(.0))]
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
                | Self::GateBusy
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
            sqlx::Error::Database(cause) => match meaning(cause.code().as_deref()) {
                Meaning::LostRace => Self::RunAgain,
                Meaning::KeyTaken => Self::KeyTaken,
                Meaning::GateBusy => Self::GateBusy,
                Meaning::Full => Self::Full(error),
                Meaning::Unavailable => Self::Unavailable(error),
                Meaning::Other => Self::Database(error),
            },
            _ => Self::Database(error),
        }
    }
}

/// A migration that this release does not know is a newer release's.
fn refused_schema(cause: &sqlx::migrate::MigrateError) -> String {
    match cause {
        sqlx::migrate::MigrateError::VersionMissing(version) => format!(
            "the database is of a newer release (it has migration {version}, which this release \
             does not know); start that release, or restore a backup from before the upgrade"
        ),
        other => format!("the database's schema could not be brought up to date: {other}"),
    }
}

/// What a database's error code means for the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    LostRace,
    KeyTaken,
    GateBusy,
    Full,
    Unavailable,
    Other,
}

fn meaning(code: Option<&str>) -> Meaning {
    match code {
        // SQLSTATE has five characters (PostgreSQL, appendix A).
        Some(code) if code.len() == 5 => postgres_meaning(code),
        // An extended result code's low byte is the primary one (SQLite, rescode).
        Some(code) => {
            code.parse::<u32>().map_or(Meaning::Other, |code| sqlite_meaning(code & 0xff))
        }
        None => Meaning::Other,
    }
}

fn postgres_meaning(code: &str) -> Meaning {
    match code {
        // Serialization failure, deadlock, and our own `must_match`.
        "40001" | "40P01" => Meaning::LostRace,
        "AS001" => Meaning::KeyTaken,
        "AS003" => Meaning::GateBusy,
        "53100" => Meaning::Full,
        // Connection trouble; out of memory, connections or other resources.
        _ if code.starts_with("08") || code.starts_with("53") => Meaning::Unavailable,
        // Not the transaction it should be part of; read-only standby; idle
        // transaction ended; lock timeout; canceled, among others by the
        // statement timeout; shutdown, crash, starting up; error of a disk.
        "AS002" | "25006" | "25P03" | "55P03" | "57014" | "57P01" | "57P02" | "57P03" | "57P05"
        | "58000" | "58030" => Meaning::Unavailable,
        _ => Meaning::Other,
    }
}

fn sqlite_meaning(primary: u32) -> Meaning {
    match primary {
        // Busy, also recovering and with a stale snapshot; locked.
        5 | 6 => Meaning::LostRace,
        13 => Meaning::Full,
        // Out of memory, read-only, disk error, damaged, cannot open, no database.
        7 | 8 | 10 | 11 | 14 | 26 => Meaning::Unavailable,
        _ => Meaning::Other,
    }
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
    use super::{Error, Meaning, meaning};

    #[test]
    fn a_database_in_trouble_is_unavailable_and_a_full_one_is_full() {
        let codes = ["53200", "53300", "57014", "58030", "25P03", "55P03", "08006", "AS002"];
        for code in codes.into_iter().chain(["10", "778", "7", "8", "264", "11", "14", "26"]) {
            assert_eq!(meaning(Some(code)), Meaning::Unavailable, "{code}");
        }
        for code in ["53100", "13"] {
            assert_eq!(meaning(Some(code)), Meaning::Full, "{code}");
        }
        for code in ["40001", "40P01", "5", "261", "517", "6", "262"] {
            assert_eq!(meaning(Some(code)), Meaning::LostRace, "{code}");
        }
        for code in [Some("23505"), Some("1"), Some("42P01"), None] {
            assert_eq!(meaning(code), Meaning::Other, "{code:?}");
        }
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
            assert!(lost.lost_race(), "{lost}");
        }
        let told = [Error::KeyTaken, Error::InvalidCursor, Error::LeaseLost, Error::NotFound];
        for told in told.into_iter().chain([Error::WorkspaceGone]) {
            assert!(!told.lost_race(), "{told}");
        }
    }
}
