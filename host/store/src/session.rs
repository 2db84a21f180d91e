//! Transaction state of driver connections: reports whether the server has a
//! transaction open, and resets the connection.
//!
//! The store begins and ends transactions by its own statements
//! ([`Tx`](super::Tx)). The drivers count transactions by what they sent, which
//! is not reliable: SQLite rolls back by itself when its disk is full, and a
//! cancelled `BEGIN` is not counted.

use sqlx::postgres::PgTransactionManager;
use sqlx::sqlite::SqliteTransactionManager;
use sqlx::{Connection, PgConnection, SqliteConnection};
use sqlx_core::transaction::TransactionManager;

/// A connection that can report whether the server has a transaction open on it.
pub(super) trait DatabaseSession: Connection + 'static {
    /// Returns whether the server reports that no transaction is open. One
    /// round trip.
    fn is_idle(&mut self) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;

    /// Rolls back any open transaction, releases the session's advisory locks,
    /// resets its settings, and returns whether the server reports that no
    /// transaction is open. Fails with SQLSTATE 25006 if transactions of the
    /// PostgreSQL session are read-only by default.
    fn settle(&mut self) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;
}

/// Returns whether no transaction was open, from the result of a driver's
/// `begin` with a statement that begins nothing: after it, the driver compares
/// the server's state.
fn reported(begun: Result<(), sqlx::Error>) -> Result<bool, sqlx::Error> {
    match begun {
        Ok(()) => Ok(false),
        Err(sqlx::Error::BeginFailed) => Ok(true),
        // PostgreSQL: "current transaction is aborted".
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("25P02") => Ok(false),
        Err(error) => Err(error),
    }
}

impl DatabaseSession for PgConnection {
    async fn is_idle(&mut self) -> Result<bool, sqlx::Error> {
        let begun = PgTransactionManager::begin(self, Some(statement("SELECT 1"))).await;
        forget_begin(self, &begun);
        reported(begun)
    }

    async fn settle(&mut self) -> Result<bool, sqlx::Error> {
        const END: &str = "ROLLBACK; RESET statement_timeout; RESET lock_timeout; \
             SELECT pg_advisory_unlock_all(); \
             DO $$ BEGIN IF current_setting('default_transaction_read_only') = 'on' THEN \
             RAISE read_only_sql_transaction USING MESSAGE = 'the session is read-only'; \
             END IF; END $$";
        let begun = PgTransactionManager::begin(self, Some(statement(END))).await;
        forget_begin(self, &begun);
        reported(begun)
    }
}

/// Corrects the PostgreSQL driver's transaction count after its `begin` was
/// used to test for an open transaction: it counts an already open transaction
/// as its own and would send a rollback before the next statement.
fn forget_begin(connection: &mut PgConnection, begun: &Result<(), sqlx::Error>) {
    if begun.is_ok() {
        PgTransactionManager::start_rollback(connection);
    }
}

impl DatabaseSession for SqliteConnection {
    async fn is_idle(&mut self) -> Result<bool, sqlx::Error> {
        let begun = SqliteTransactionManager::begin(self, Some(statement("SELECT 1"))).await;
        if begun.is_ok() {
            SqliteTransactionManager::rollback(self).await?;
        }
        reported(begun)
    }

    async fn settle(&mut self) -> Result<bool, sqlx::Error> {
        // Fails if SQLite has already rolled back.
        let _ = sqlx::query("ROLLBACK").execute(&mut *self).await;
        self.is_idle().await
    }
}

fn statement(text: &'static str) -> sqlx::SqlStr {
    sqlx::SqlSafeStr::into_sql_str(text)
}
