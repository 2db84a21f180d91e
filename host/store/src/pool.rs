//! A small connection pool.
//!
//! sqlx's own pool pings the server whenever a connection is returned, which
//! would double the round trips of a request with one statement. Here a
//! connection whose work ended well is reused without a ping.
//!
//! Invariant: a connection is lent only while the server has no transaction
//! open on it. A connection that is dropped during its work is reset by a task
//! of its own: everything is rolled back, and the server must confirm that no
//! transaction is open and that the session can write. Otherwise it is closed,
//! as is a connection whose server did not respond in time ([`time_limit`]).
//!
//! Connections belong to the runtime that created the pool. A connection opened
//! by a low-priority call can later serve other requests, so it must not depend
//! on that call's thread.

#[cfg(test)]
mod tests;
mod time_limit;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::{counter, histogram};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::context::TokioContext;

use super::error::database_code;
use super::session::DatabaseSession;

/// Idle time after which a connection is pinged before it is lent.
const TRUSTED_FOR: Duration = Duration::from_secs(20);
/// Idle time after which a connection is closed, because each has its own
/// caches.
const IDLE_FOR: Duration = Duration::from_secs(120);
/// Maximum time of a ping or reset of a connection.
const PATIENCE: Duration = Duration::from_secs(1);
/// SQLSTATE of a session whose transactions are read-only.
const READ_ONLY: &str = "25006";
/// Metric: connections dropped during their work, by how they were reset.
const DROPPED: &str = "assurance_database_connections_dropped_total";
/// Metric: connections with an unexpectedly open transaction. Always 0, unless
/// the service has a defect.
const LEFT_OPEN: &str = "assurance_database_transactions_left_open_total";

/// Metric: how long callers waited because all connections were lent, and how
/// long those waited that got none in time.
const WAIT_SECONDS: &str = "assurance_database_connection_wait_seconds";
/// Metric: callers that got no connection within the time limit.
const TIMEOUTS: &str = "assurance_database_connection_timeouts_total";

/// Describes the pool's metrics.
pub(super) fn describe_metrics() {
    metrics::describe_counter!(
        DROPPED,
        "Database connections dropped during their work, by outcome (settled, closed)"
    );
    metrics::describe_counter!(
        LEFT_OPEN,
        "Database connections with an unexpectedly open transaction; a defect if not 0"
    );
    counter!(LEFT_OPEN).increment(0);
    metrics::describe_histogram!(
        WAIT_SECONDS,
        "Time that callers waited for a database connection"
    );
    metrics::describe_counter!(TIMEOUTS, "Callers that got no database connection in time");
    counter!(TIMEOUTS).increment(0);
}

/// A pool of connections to one database.
#[derive(Debug)]
pub(super) struct Pool<C: DatabaseSession>(Arc<Inner<C>>);

impl<C: DatabaseSession> Clone for Pool<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Limits of a connection pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolLimits {
    /// Maximum number of connections.
    pub(super) connections: u32,
    /// Maximum time that a caller waits for a connection.
    pub(super) timeout: Duration,
    /// Maximum age of a connection, checked when it is returned; `None`: no limit. It bounds the
    /// server's memory per connection.
    pub(super) lifetime: Option<Duration>,
    /// Maximum time of a statement, after which its connection is closed; `None`: no limit.
    pub(super) statement: Option<Duration>,
}

#[derive(Debug)]
struct Inner<C: DatabaseSession> {
    options: C::Options,
    limits: PoolLimits,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<IdleConnection<C>>>,
    /// Time of the last connection failure. Connections that have been idle
    /// since before it are pinged before they are lent.
    distrusted: Mutex<Instant>,
    /// Connections opened until this time are closed when they are returned.
    expired: Mutex<Instant>,
    /// Runtime on which connections are opened and reset.
    runtime: Handle,
}

#[derive(Debug)]
struct IdleConnection<C> {
    connection: C,
    made: Instant,
    since: Instant,
}

/// Whether a connection may have an open transaction or a running statement when its borrower
/// returns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TransactionStatus {
    /// All statements ended well, outside a transaction.
    Finished,
    /// Each statement is a transaction of its own; one may be running.
    Statements,
    /// A transaction was begun, and the server has not confirmed its end.
    Transaction,
    /// The server did not respond within the time limit of a statement.
    Lost,
}

/// A connection borrowed from a pool. Dropping it returns it, after a reset
/// unless [`PooledConnection::release`] was called.
#[derive(Debug)]
pub(super) struct PooledConnection<C: DatabaseSession> {
    connection: Option<C>,
    made: Instant,
    state: TransactionStatus,
    /// Maximum time of a statement; [`Duration::MAX`]: no limit.
    limit: Duration,
    pool: Arc<Inner<C>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl<C: DatabaseSession> Pool<C> {
    /// Creates a pool on the current runtime.
    pub(super) fn new(options: C::Options, limits: PoolLimits) -> Self {
        let permits = Arc::new(Semaphore::new(limits.connections.max(1) as usize));
        let (idle, runtime) = (Mutex::default(), Handle::current());
        let (distrusted, expired) = (Mutex::new(Instant::now()), Mutex::new(Instant::now()));
        Self(Arc::new(Inner { options, limits, permits, idle, distrusted, expired, runtime }))
    }

    /// Waits for a connection, at most for the pool's timeout.
    pub(super) async fn acquire(&self) -> Result<PooledConnection<C>, sqlx::Error> {
        let work = async { self.lend(self.permit().await?).await };
        self.in_time(work).await
    }

    /// Returns a connection if one is free; `None` otherwise. Waits only to
    /// open or ping the connection.
    pub(super) async fn try_acquire(&self) -> Result<Option<PooledConnection<C>>, sqlx::Error> {
        match Arc::clone(&self.0.permits).try_acquire_owned() {
            Ok(permit) => self.in_time(self.lend(permit)).await.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Waits for a permit of the pool without taking a connection. Used as
    /// SQLite's write lock.
    pub(super) async fn turn(&self) -> Result<OwnedSemaphorePermit, sqlx::Error> {
        self.in_time(self.permit()).await
    }

    /// Refuses further borrowing and closes idle connections; borrowed ones are
    /// closed when they are returned.
    pub(super) async fn close(&self) {
        self.0.permits.close();
        let idle = std::mem::take(&mut *self.0.idle.lock());
        for one in idle {
            // An error while closing needs no handling.
            let _ = one.connection.close().await;
        }
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, sqlx::Error> {
        if let Ok(permit) = Arc::clone(&self.0.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let begun = Instant::now();
        let permit = Arc::clone(&self.0.permits).acquire_owned().await;
        histogram!(WAIT_SECONDS).record(begun.elapsed().as_secs_f64());
        permit.map_err(|_| sqlx::Error::PoolClosed)
    }

    async fn lend(&self, permit: OwnedSemaphorePermit) -> Result<PooledConnection<C>, sqlx::Error> {
        let trusted = self.0.take_trusted();
        let (connection, made) = match trusted {
            Some(taken) => taken,
            None => Box::pin(self.0.try_or_connect()).await?,
        };
        Ok(PooledConnection {
            connection: Some(connection),
            made,
            state: TransactionStatus::Statements,
            limit: self.0.limits.statement.unwrap_or(Duration::MAX),
            pool: Arc::clone(&self.0),
            permit: Some(permit),
        })
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let (timeout, begun) = (self.0.limits.timeout, Instant::now());
        tokio::time::timeout(timeout, work).await.unwrap_or_else(|_| {
            counter!(TIMEOUTS).increment(1);
            histogram!(WAIT_SECONDS).record(begun.elapsed().as_secs_f64());
            Err(sqlx::Error::PoolTimedOut)
        })
    }
}

impl<C: DatabaseSession> Inner<C> {
    /// Returns the most recently used connection if it needs no ping.
    fn take_trusted(&self) -> Option<(C, Instant)> {
        let mut idle = self.idle.lock();
        if !self.is_trusted(idle.last()?) {
            return None;
        }
        idle.pop().map(|idle| (idle.connection, idle.made))
    }

    async fn try_or_connect(&self) -> Result<(C, Instant), sqlx::Error> {
        loop {
            let Some(mut idle) = self.idle.lock().pop() else {
                let connecting = C::connect_with(&self.options);
                let connection = TokioContext::new(connecting, self.runtime.clone()).await?;
                return Ok((connection, Instant::now()));
            };
            if is_usable(&mut idle.connection).await {
                return Ok((idle.connection, idle.made));
            }
            self.distrust();
        }
    }

    fn is_trusted(&self, idle: &IdleConnection<C>) -> bool {
        idle.since.elapsed() < TRUSTED_FOR && idle.since > *self.distrusted.lock()
    }

    /// Records a connection failure: a server restart or network failure may
    /// have broken the other connections too.
    fn distrust(&self) {
        *self.distrusted.lock() = Instant::now();
    }

    /// Closes the idle connections, and the borrowed ones when they are
    /// returned: PostgreSQL decides at the start of a session whether it is
    /// read-only, so they would stay so after the database is writable again.
    fn expire(&self) {
        *self.expired.lock() = Instant::now();
        self.idle.lock().clear();
    }

    /// Rolls back or closes a connection that its borrower left inside a
    /// transaction.
    async fn settle(&self, mut connection: C, made: Instant, state: TransactionStatus) {
        if state == TransactionStatus::Statements && !self.has_expected_state(&mut connection).await
        {
            return;
        }
        match tokio::time::timeout(PATIENCE, connection.settle()).await {
            Ok(Ok(true)) => {
                counter!(DROPPED, "outcome" => "settled").increment(1);
                self.put_back(connection, made);
                return;
            }
            Ok(Ok(false)) => report_open("a rollback did not end its transaction"),
            Ok(Err(error)) => {
                tracing::debug!(%error, "closing a connection that cannot be reset");
                let is_read_only = database_code(&error).as_deref() == Some(READ_ONLY);
                if is_read_only { self.expire() } else { self.distrust() }
            }
            Err(_) => {
                tracing::debug!("closing a connection whose last statement still runs");
                self.distrust();
            }
        }
        counter!(DROPPED, "outcome" => "closed").increment(1);
    }

    /// Returns whether the server responds. Reports a transaction that is open
    /// although only single statements ran; the caller rolls it back.
    async fn has_expected_state(&self, connection: &mut C) -> bool {
        match tokio::time::timeout(PATIENCE, connection.is_idle()).await {
            Ok(Ok(idle)) => {
                if !idle {
                    report_open("single statements ran inside a transaction");
                }
                true
            }
            Ok(Err(_)) | Err(_) => {
                self.distrust();
                counter!(DROPPED, "outcome" => "closed").increment(1);
                false
            }
        }
    }

    /// Keeps a connection for the next borrower; the most recently returned one
    /// is lent first. Closes connections that were idle for too long.
    fn put_back(&self, connection: C, made: Instant) {
        let mut idle = self.idle.lock();
        let old = made <= *self.expired.lock()
            || self.limits.lifetime.is_some_and(|lifetime| made.elapsed() > lifetime);
        idle.retain(|one| one.since.elapsed() < IDLE_FOR);
        if !old && !self.permits.is_closed() {
            idle.push(IdleConnection { connection, made, since: Instant::now() });
        }
    }
}

/// Returns whether the server responds in time and has no transaction open on this connection.
async fn is_usable<C: DatabaseSession>(connection: &mut C) -> bool {
    let asked = tokio::time::timeout(PATIENCE, connection.is_idle());
    match asked.await {
        Ok(Ok(true)) => true,
        Ok(Ok(false)) => {
            report_open("an idle connection was inside a transaction");
            false
        }
        Ok(Err(_)) | Err(_) => false,
    }
}

fn report_open(what: &'static str) {
    counter!(LEFT_OPEN).increment(1);
    tracing::error!(what, "a database connection was left inside a transaction; rolled back");
}

impl<C: DatabaseSession> PooledConnection<C> {
    /// Records that a transaction begins, before the `BEGIN`, or that it has
    /// ended, after the server has confirmed its end.
    pub(super) fn set_status(&mut self, status: TransactionStatus) {
        if self.state != TransactionStatus::Lost {
            self.state = status;
        }
    }

    /// Returns to the pool a connection whose work was interrupted. `then_drop`
    /// is dropped after the reset.
    pub(super) fn abandon(mut self, then_drop: impl Send + 'static) {
        if let Some(connection) = self.connection.take() {
            self.settle_later(connection, then_drop);
        }
    }

    fn settle_later(&mut self, connection: C, then_drop: impl Send + 'static) {
        let (pool, permit) = (Arc::clone(&self.pool), self.permit.take());
        let (made, state) = (self.made, self.state);
        // During shutdown the task does not run, and the connection is closed.
        self.pool.runtime.spawn(async move {
            pool.settle(connection, made, state).await;
            drop((permit, then_drop));
        });
    }

    /// Returns to the pool a connection whose work has ended, without an open
    /// transaction or a running statement.
    pub(super) fn release(mut self) {
        if self.state == TransactionStatus::Statements {
            self.state = TransactionStatus::Finished;
        }
    }
}

impl<C: DatabaseSession> Drop for PooledConnection<C> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        match self.state {
            TransactionStatus::Finished => self.pool.put_back(connection, self.made),
            TransactionStatus::Lost => self.pool.discard(connection),
            TransactionStatus::Statements | TransactionStatus::Transaction => {
                self.settle_later(connection, ());
            }
        }
    }
}

impl<C: DatabaseSession> Deref for PooledConnection<C> {
    type Target = C;

    fn deref(&self) -> &C {
        self.connection.as_ref().expect("a borrowed connection is present until it is dropped")
    }
}

impl<C: DatabaseSession> DerefMut for PooledConnection<C> {
    fn deref_mut(&mut self) -> &mut C {
        self.connection.as_mut().expect("a borrowed connection is present until it is dropped")
    }
}
