//! What the pool asks of a driver's connection: whether the server has a
//! transaction open on it, and to end that.
//!
//! Transactions are begun and ended by statements of the store's own
//! ([`Tx`](super::Tx)). The drivers also count transactions, but count what
//! they sent, not what the server did: SQLite rolls back by itself when its
//! disk is full, and a `BEGIN` whose caller has gone is not counted at all.

use sqlx::{Connection, PgConnection, Sqlite, SqliteConnection};
use sqlx_core::transaction::TransactionManager;

type SqliteTransactions = <Sqlite as sqlx::Database>::TransactionManager;
type PostgresTransactions = <sqlx::Postgres as sqlx::Database>::TransactionManager;

/// A connection whose transactions the server can be asked about.
pub(super) trait Session: Connection + 'static {
    /// Whether the server reports that no transaction is open. One round trip.
    fn is_idle(&mut self) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;

    /// Rolls back whatever is open, gives up the session's advisory locks and
    /// settings, and returns whether the server reports that no transaction is
    /// open.
    fn settle(&mut self) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;
}

/// The server's answer to a driver's `begin` with a statement that begins
/// nothing: the driver compares the server's state afterwards.
fn reported(begun: Result<(), sqlx::Error>) -> Result<bool, sqlx::Error> {
    match begun {
        Ok(()) => Ok(false),
        Err(sqlx::Error::BeginFailed) => Ok(true),
        // PostgreSQL: "current transaction is aborted".
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("25P02") => Ok(false),
        Err(error) => Err(error),
    }
}

impl Session for PgConnection {
    async fn is_idle(&mut self) -> Result<bool, sqlx::Error> {
        let begun = PostgresTransactions::begin(self, Some(statement("SELECT 1"))).await;
        forget_begin(self, &begun);
        reported(begun)
    }

    async fn settle(&mut self) -> Result<bool, sqlx::Error> {
        const END: &str = "ROLLBACK; RESET statement_timeout; RESET lock_timeout; \
             SELECT pg_advisory_unlock_all()";
        let begun = PostgresTransactions::begin(self, Some(statement(END))).await;
        forget_begin(self, &begun);
        reported(begun)
    }
}

/// The driver counts a transaction that it found open as one of its own; its
/// rollback is sent before the next statement.
fn forget_begin(connection: &mut PgConnection, begun: &Result<(), sqlx::Error>) {
    if begun.is_ok() {
        PostgresTransactions::start_rollback(connection);
    }
}

impl Session for SqliteConnection {
    async fn is_idle(&mut self) -> Result<bool, sqlx::Error> {
        let begun = SqliteTransactions::begin(self, Some(statement("SELECT 1"))).await;
        if begun.is_ok() {
            SqliteTransactions::rollback(self).await?;
        }
        reported(begun)
    }

    async fn settle(&mut self) -> Result<bool, sqlx::Error> {
        // Fails if SQLite has rolled back by itself.
        let _ = sqlx::query("ROLLBACK").execute(&mut *self).await;
        self.is_idle().await
    }
}

fn statement(text: &'static str) -> sqlx::SqlStr {
    sqlx::SqlSafeStr::into_sql_str(text)
}
