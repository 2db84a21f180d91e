//! Limits the time of PostgreSQL's statements on this side of the connection.
//!
//! A server can vanish without closing its connections, for example with its
//! machine. Its own limits then end no wait, and the driver sets no socket
//! option that would. So a statement fails as unavailable once its limit has
//! passed, and its connection is closed. The server may have executed the
//! statement nevertheless: the outcome of a commit is then unknown, as after a
//! broken connection.
//!
//! Statements that a function sends over the driver's connection itself
//! (`&mut PgConnection`) have no limit.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{self, BoxFuture};
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use metrics::counter;
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Either, Execute, Executor, PgConnection, Postgres, SqlStr};
use tokio::time::Sleep;

use super::{DROPPED, DatabaseSession, Inner, PooledConnection, TransactionStatus};

/// The running time of one statement.
struct StatementTime<'c> {
    limit: Pin<Box<Sleep>>,
    state: &'c mut TransactionStatus,
}

impl StatementTime<'_> {
    /// Returns whether the limit has passed. Then the connection is lost.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let is_over = self.limit.as_mut().poll(context).is_ready();
        if is_over {
            *self.state = TransactionStatus::Lost;
        }
        is_over
    }
}

fn no_response() -> sqlx::Error {
    let text = "the server did not respond within the time limit of a statement";
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, text))
}

impl<C: DatabaseSession> Inner<C> {
    /// Closes a connection whose server did not respond in time.
    pub(super) fn discard(&self, connection: C) {
        tracing::debug!("closing a connection whose server did not respond in time");
        drop(connection);
        self.distrust();
        counter!(DROPPED, "outcome" => "closed").increment(1);
    }
}

impl<C: DatabaseSession> PooledConnection<C> {
    /// Makes the server confirm that no transaction is open. Otherwise it
    /// returns an error, after which the connection is closed.
    pub(crate) async fn confirm_idle(&mut self) -> Result<(), sqlx::Error> {
        let limit = self.limit;
        let Ok(is_idle) = tokio::time::timeout(limit, self.is_idle()).await else {
            self.state = TransactionStatus::Lost;
            return Err(no_response());
        };
        if is_idle? {
            return Ok(());
        }
        Err(sqlx::Error::Protocol("a transaction was open on a borrowed connection".into()))
    }

    /// Removes the time limit of statements until the connection is returned.
    pub(crate) fn remove_time_limit(&mut self) {
        self.limit = Duration::MAX;
    }

    /// Returns the driver's connection, and the time of the statement that the
    /// caller begins.
    fn begin_statement(&mut self) -> (&mut C, StatementTime<'_>) {
        let limit = Box::pin(tokio::time::sleep(self.limit));
        let connection = self.connection.as_mut();
        let connection = connection.expect("a borrowed connection is present until it is dropped");
        (connection, StatementTime { limit, state: &mut self.state })
    }
}

/// Executes statements with the connection's time limit.
impl<'c> Executor<'c> for &'c mut PooledConnection<PgConnection> {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let (driver, mut time) = self.begin_statement();
        let mut rows = driver.fetch_many(query);
        let next = move |context: &mut Context<'_>| {
            let row = rows.poll_next_unpin(context);
            if row.is_pending() && time.is_over(context) {
                return Poll::Ready(Some(Err(no_response())));
            }
            row
        };
        stream::poll_fn(next).boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        // Reads to the end: an error may follow the first row.
        let keep_first = |first: Option<PgRow>, row| future::ready(Ok(first.or(Some(row))));
        self.fetch(query).try_fold(None, keep_first).boxed()
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        let (driver, mut time) = self.begin_statement();
        let mut preparing = driver.prepare_with(sql, parameters);
        let end = move |context: &mut Context<'_>| {
            let prepared = preparing.poll_unpin(context);
            if prepared.is_pending() && time.is_over(context) {
                return Poll::Ready(Err(no_response()));
            }
            prepared
        };
        future::poll_fn(end).boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use sqlx::postgres::PgConnectOptions;

    use super::super::{Pool, PoolLimits};
    use super::*;
    use crate::testing::fresh;
    use crate::{Backend, Error};

    const SLEEP: &str = "SELECT pg_sleep(4)";

    async fn server_of(connection: &mut PooledConnection<PgConnection>) -> i32 {
        sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection).await.unwrap()
    }

    #[tokio::test]
    async fn a_statement_without_a_response_in_time_costs_its_connection() {
        let Some(fresh) = fresh(Backend::Postgres).await else { return };
        let options = PgConnectOptions::from_str(&fresh.settings.url).unwrap();
        let (timeout, statement) = (Duration::from_secs(5), Some(Duration::from_secs(2)));
        let limits = PoolLimits { connections: 1, timeout, lifetime: None, statement };
        let pool: Pool<PgConnection> = Pool::new(options, limits);
        let mut connection = pool.acquire().await.unwrap();
        let late = server_of(&mut connection).await;
        let refused = sqlx::query(SLEEP).execute(&mut connection).await.unwrap_err();
        assert!(matches!(Error::from(refused), Error::Unavailable(_)));
        // Its borrower ignores the error.
        connection.release();
        let mut connection = pool.acquire().await.unwrap();
        assert_ne!(server_of(&mut connection).await, late);
        connection.remove_time_limit();
        sqlx::query(SLEEP).execute(&mut connection).await.unwrap();
    }
}
