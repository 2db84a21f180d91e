//! A small pool of connections.
//!
//! sqlx's own pool asks the server whether it is there each time a connection
//! is given back, which would double the round trips of a one-statement
//! request. Here a connection whose work ended well goes straight back.
//!
//! Invariant: a connection is lent only while the server has no transaction
//! open on it. One that is dropped in the middle of something is settled by a
//! task of its own first: everything is rolled back, and the server must
//! confirm that it is outside of a transaction. Otherwise it is closed.
//!
//! Connections belong to the runtime that made the pool: one that a
//! low-priority call opens later serves quick requests, and must not depend on
//! that call's thread.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::counter;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::context::TokioContext;

use super::session::Session;

/// Idle longer than this, a connection is tried before it is lent.
const TRUSTED_FOR: Duration = Duration::from_secs(20);
/// Idle longer than this, a connection is closed: each has caches of its own.
const IDLE_FOR: Duration = Duration::from_secs(120);
/// How long a server may take to answer when a connection is tried or settled.
const PATIENCE: Duration = Duration::from_secs(1);
/// Connections that were dropped in the middle of their work, by what became
/// of them.
const DROPPED: &str = "assurance_database_connections_dropped_total";
/// Connections that were inside a transaction when they should not have been.
/// Always 0, unless the service has a defect.
const LEFT_OPEN: &str = "assurance_database_transactions_left_open_total";

/// Describes the pool's metrics.
pub(super) fn describe_metrics() {
    metrics::describe_counter!(
        DROPPED,
        "Database connections dropped in the middle of their work, by outcome (settled, closed)"
    );
    metrics::describe_counter!(
        LEFT_OPEN,
        "Database connections found inside a transaction that nobody held; a defect if not 0"
    );
    counter!(LEFT_OPEN).increment(0);
}

/// Connections of one kind to one database.
#[derive(Debug)]
pub(super) struct Pool<C: Session>(Arc<Inner<C>>);

impl<C: Session> Clone for Pool<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// What a pool may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolLimits {
    /// Connections at most.
    pub(super) connections: u32,
    /// How long a caller waits for one.
    pub(super) timeout: Duration,
    /// Older than this, a connection is closed when it comes back, so that a
    /// server's memory for it does not grow for ever.
    pub(super) lifetime: Option<Duration>,
}

#[derive(Debug)]
struct Inner<C: Session> {
    options: C::Options,
    limits: PoolLimits,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Idle<C>>>,
    /// Connections that have been idle since before are tried before they are
    /// lent: the server stopped answering another one.
    distrusted: Mutex<Instant>,
    /// Where connections are opened and settled.
    runtime: Handle,
}

#[derive(Debug)]
struct Idle<C> {
    connection: C,
    made: Instant,
    since: Instant,
}

/// How a borrower left a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Its statements ended well, outside of a transaction.
    Finished,
    /// Each statement is a transaction of its own; one may be under way.
    Statements,
    /// A transaction was begun, and the server has not confirmed its end.
    Transaction,
}

/// A connection on loan.
#[derive(Debug)]
pub(super) struct Pooled<C: Session> {
    connection: Option<C>,
    made: Instant,
    state: State,
    pool: Arc<Inner<C>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl<C: Session> Pool<C> {
    /// A pool of the runtime that this is called in.
    pub(super) fn new(options: C::Options, limits: PoolLimits) -> Self {
        let permits = Arc::new(Semaphore::new(limits.connections.max(1) as usize));
        let (idle, runtime) = (Mutex::default(), Handle::current());
        let distrusted = Mutex::new(Instant::now());
        Self(Arc::new(Inner { options, limits, permits, idle, distrusted, runtime }))
    }

    /// Waits its turn, no longer than the pool's timeout.
    pub(super) async fn acquire(&self) -> Result<Pooled<C>, sqlx::Error> {
        let work = async { self.lend(self.permit().await?).await };
        self.in_time(work).await
    }

    /// Lends a connection if nobody has to be waited for.
    pub(super) async fn try_acquire(&self) -> Result<Option<Pooled<C>>, sqlx::Error> {
        match Arc::clone(&self.0.permits).try_acquire_owned() {
            Ok(permit) => self.in_time(self.lend(permit)).await.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Waits for a place in the pool without taking a connection: for SQLite's
    /// turn to write.
    pub(super) async fn turn(&self) -> Result<OwnedSemaphorePermit, sqlx::Error> {
        self.in_time(self.permit()).await
    }

    /// Refuses new loans and closes what is idle; loans close as they end.
    pub(super) async fn close(&self) {
        self.0.permits.close();
        let idle = std::mem::take(&mut *self.0.idle.lock());
        for one in idle {
            // A close that fails leaves nothing to be done.
            let _ = one.connection.close().await;
        }
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, sqlx::Error> {
        let permits = Arc::clone(&self.0.permits);
        permits.acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)
    }

    async fn lend(&self, permit: OwnedSemaphorePermit) -> Result<Pooled<C>, sqlx::Error> {
        let trusted = self.0.take_trusted();
        let (connection, made) = match trusted {
            Some(taken) => taken,
            None => Box::pin(self.0.try_or_connect()).await?,
        };
        Ok(Pooled {
            connection: Some(connection),
            made,
            state: State::Statements,
            pool: Arc::clone(&self.0),
            permit: Some(permit),
        })
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let timeout = self.0.limits.timeout;
        tokio::time::timeout(timeout, work).await.map_err(|_| sqlx::Error::PoolTimedOut)?
    }
}

impl<C: Session> Inner<C> {
    /// The connection that was used last, if it need not be tried.
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

    fn is_trusted(&self, idle: &Idle<C>) -> bool {
        idle.since.elapsed() < TRUSTED_FOR && idle.since > *self.distrusted.lock()
    }

    /// What made one connection useless may have met the others: a server that
    /// was restarted, a network that is cut.
    fn distrust(&self) {
        *self.distrusted.lock() = Instant::now();
    }

    /// Settles a connection whose borrower left it in the middle of its work.
    async fn settle(&self, mut connection: C, made: Instant, state: State) {
        if state == State::Statements && !self.is_where_it_should_be(&mut connection).await {
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
                tracing::debug!(%error, "closing a connection that cannot be rolled back");
                self.distrust();
            }
            Err(_) => {
                tracing::debug!("closing a connection whose last statement still runs");
                self.distrust();
            }
        }
        counter!(DROPPED, "outcome" => "closed").increment(1);
    }

    /// Whether the server answers. Reports a transaction that is open where
    /// only single statements were run; the caller rolls it back.
    async fn is_where_it_should_be(&self, connection: &mut C) -> bool {
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

    /// Keeps a connection for the next borrower; the one that came back last is
    /// lent first. Closes those that nobody has needed for long.
    fn put_back(&self, connection: C, made: Instant) {
        let old = self.limits.lifetime.is_some_and(|lifetime| made.elapsed() > lifetime);
        let mut idle = self.idle.lock();
        idle.retain(|one| one.since.elapsed() < IDLE_FOR);
        if !old && !self.permits.is_closed() {
            idle.push(Idle { connection, made, since: Instant::now() });
        }
    }
}

/// Whether the server answers and has no transaction open. One out of reach may
/// never answer at all.
async fn is_usable<C: Session>(connection: &mut C) -> bool {
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

impl<C: Session> Pooled<C> {
    /// To be called before a transaction is begun on it.
    pub(super) fn begins_transaction(&mut self) {
        self.state = State::Transaction;
    }

    /// To be called when the server has confirmed the transaction's end.
    pub(super) fn ended_transaction(&mut self) {
        self.state = State::Statements;
    }

    /// Has the server confirm that single statements are transactions of their
    /// own; a connection that is not so is closed by the caller's error.
    pub(super) async fn confirm_idle(&mut self) -> Result<(), sqlx::Error> {
        if self.is_idle().await? {
            return Ok(());
        }
        Err(sqlx::Error::Protocol("a transaction was open on a connection on loan".into()))
    }

    /// The work was left half-way; `then_drop` is dropped when the connection
    /// has been settled.
    pub(super) fn abandon(mut self, then_drop: impl Send + 'static) {
        if let Some(connection) = self.connection.take() {
            self.settle_later(connection, then_drop);
        }
    }

    fn settle_later(&mut self, connection: C, then_drop: impl Send + 'static) {
        let (pool, permit) = (Arc::clone(&self.pool), self.permit.take());
        let (made, state) = (self.made, self.state);
        // At shutdown nothing is run any more, and the connection is simply
        // closed.
        self.pool.runtime.spawn(async move {
            pool.settle(connection, made, state).await;
            drop((permit, then_drop));
        });
    }

    /// The work ended in good order: nothing is open, nothing on its way.
    pub(super) fn release(mut self) {
        if self.state == State::Statements {
            self.state = State::Finished;
        }
    }
}

impl<C: Session> Drop for Pooled<C> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if self.state == State::Finished {
            self.pool.put_back(connection, self.made);
            return;
        }
        self.settle_later(connection, ());
    }
}

impl<C: Session> Deref for Pooled<C> {
    type Target = C;

    fn deref(&self) -> &C {
        self.connection.as_ref().expect("a loan holds its connection until it is dropped")
    }
}

impl<C: Session> DerefMut for Pooled<C> {
    fn deref_mut(&mut self) -> &mut C {
        self.connection.as_mut().expect("a loan holds its connection until it is dropped")
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Executor as _;

    use crate::store::connection::{Connection, on};
    use crate::store::testing::fresh;
    use crate::store::{Backend, Store};

    use super::*;

    async fn server_of(connection: &mut Connection) -> i32 {
        on!(connection, c => {
            sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *c).await.unwrap()
        })
    }

    /// Begins a statement on a connection of its own and leaves it alone.
    async fn abandon(store: &Store, statement: &'static str) {
        let mut connection = store.reader().await.unwrap();
        let running = async {
            on!(connection, c => { c.execute(statement).await.unwrap(); });
        };
        let left = tokio::time::timeout(Duration::from_millis(50), running).await;
        assert!(left.is_err(), "it runs on");
    }

    #[tokio::test]
    async fn an_abandoned_statement_costs_its_own_connection_only() {
        let Some(fresh) = fresh(Backend::Postgres).await else { return };
        let store = &fresh.store;
        let mut kept = store.reader().await.unwrap();
        let server = server_of(&mut kept).await;
        abandon(store, "SELECT pg_sleep(30)").await;
        kept.release();
        tokio::time::sleep(PATIENCE * 3 / 2).await;
        let mut again = store.reader().await.unwrap();
        assert_eq!(server_of(&mut again).await, server);
    }

    #[tokio::test]
    async fn a_connection_outlives_the_runtime_it_was_first_asked_for_in() {
        let Some(fresh) = fresh(Backend::Postgres).await else { return };
        let store = fresh.store.clone();
        let opened = std::thread::spawn(move || {
            let low = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            low.block_on(async {
                let mut connection = store.reader().await.unwrap();
                let server = server_of(&mut connection).await;
                connection.release();
                server
            })
        });
        let server = tokio::task::spawn_blocking(|| opened.join().unwrap()).await.unwrap();
        let mut connection = fresh.store.reader().await.unwrap();
        assert_eq!(server_of(&mut connection).await, server);
    }
}
