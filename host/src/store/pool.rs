//! A small pool of connections.
//!
//! sqlx's own pool asks the server whether it is there each time a connection
//! is given back, which would double the round trips of a one-statement
//! request. Here a connection that finished its work goes straight back; only
//! one that was abandoned half-way (a dropped transaction, a cancelled
//! request) is tidied by a task of its own first.
//!
//! Whoever asks for a connection, it belongs to the runtime that made the pool:
//! one that a call of low priority opens serves quick requests afterwards, and
//! must not wait for that call's thread to hear from the server.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::Connection;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::context::TokioContext;

/// Idle longer than this, a connection is tried before it is used.
const TRUSTED_FOR: Duration = Duration::from_secs(20);
/// How long a server may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(1);
/// Older than this, a connection is not kept, so that a server's memory for
/// it does not grow for ever.
const LIFETIME: Duration = Duration::from_secs(30 * 60);

/// Connections of one kind to one database.
#[derive(Debug)]
pub(super) struct Pool<C: Connection>(Arc<Inner<C>>);

impl<C: Connection> Clone for Pool<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Inner<C: Connection> {
    options: C::Options,
    timeout: Duration,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Idle<C>>>,
    /// Where connections are opened and tidied.
    runtime: Handle,
}

#[derive(Debug)]
struct Idle<C> {
    connection: C,
    made: Instant,
    since: Instant,
}

/// A connection on loan.
#[derive(Debug)]
pub(super) struct Pooled<C: Connection + 'static> {
    connection: Option<C>,
    made: Instant,
    tidy: bool,
    /// Holds something of the server's that outlives a statement.
    laden: bool,
    pool: Arc<Inner<C>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl<C: Connection + 'static> Pool<C> {
    /// A pool of the runtime that this is called in.
    pub(super) fn new(options: C::Options, max_connections: u32, timeout: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(max_connections.max(1) as usize));
        let (idle, runtime) = (Mutex::default(), Handle::current());
        Self(Arc::new(Inner { options, timeout, permits, idle, runtime }))
    }

    /// Waits its turn, no longer than the pool's timeout.
    pub(super) async fn acquire(&self) -> Result<Pooled<C>, sqlx::Error> {
        let work = async {
            let permit = Arc::clone(&self.0.permits)
                .acquire_owned()
                .await
                .map_err(|_| sqlx::Error::PoolClosed)?;
            let (connection, made) = self.0.take_or_connect().await?;
            let pool = Arc::clone(&self.0);
            Ok(Pooled {
                connection: Some(connection),
                made,
                tidy: false,
                laden: false,
                pool,
                permit: Some(permit),
            })
        };
        tokio::time::timeout(self.0.timeout, work).await.map_err(|_| sqlx::Error::PoolTimedOut)?
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
}

impl<C: Connection + 'static> Inner<C> {
    async fn take_or_connect(&self) -> Result<(C, Instant), sqlx::Error> {
        loop {
            let Some(mut idle) = self.idle.lock().pop() else {
                let connecting = C::connect_with(&self.options);
                let connection = TokioContext::new(connecting, self.runtime.clone()).await?;
                return Ok((connection, Instant::now()));
            };
            if idle.since.elapsed() < TRUSTED_FOR || answers(&mut idle.connection).await {
                return Ok((idle.connection, idle.made));
            }
            self.idle.lock().clear();
        }
    }

    /// Sends what an abandoned connection has queued (a rollback), waits for
    /// the answers and puts it back. One whose server still runs a statement
    /// that nobody waits for is closed.
    async fn tidy(&self, mut connection: C, made: Instant) {
        match tokio::time::timeout(PATIENCE, connection.ping()).await {
            Ok(Ok(())) => self.put_back(connection, made),
            // What broke this one broke the others: a restarted server.
            Ok(Err(sqlx::Error::Io(_))) => self.idle.lock().clear(),
            Ok(Err(error)) => tracing::debug!(%error, "an abandoned connection is closed"),
            Err(_) => tracing::debug!("an abandoned statement runs on; its connection is closed"),
        }
    }

    fn put_back(&self, connection: C, made: Instant) {
        if made.elapsed() < LIFETIME && !self.permits.is_closed() {
            self.idle.lock().push(Idle { connection, made, since: Instant::now() });
        }
    }
}

/// Whether the server is there. One out of reach may never answer at all.
async fn answers<C: Connection>(connection: &mut C) -> bool {
    let asked = tokio::time::timeout(PATIENCE, connection.ping());
    asked.await.is_ok_and(|answered| answered.is_ok())
}

impl<C: Connection + 'static> Pooled<C> {
    /// While it is laden (with a lock of the session's), a connection that is
    /// abandoned is closed, so that nothing is left behind.
    pub(super) fn set_laden(&mut self, laden: bool) {
        self.laden = laden;
    }

    /// The work was left half-way; what is given is dropped when the
    /// connection is tidy again.
    pub(super) fn abandon(mut self, then_drop: impl Send + 'static) {
        if let Some(connection) = self.connection.take() {
            self.tidy_up(connection, then_drop);
        }
    }

    fn tidy_up(&mut self, connection: C, then_drop: impl Send + 'static) {
        let (pool, permit, made) = (Arc::clone(&self.pool), self.permit.take(), self.made);
        // At shutdown nothing is run any more, and the connection is simply
        // closed.
        self.pool.runtime.spawn(async move {
            pool.tidy(connection, made).await;
            drop((permit, then_drop));
        });
    }

    /// The work ended in good order: nothing is open, nothing on its way.
    pub(super) fn release(mut self) {
        self.tidy = true;
    }
}

impl<C: Connection + 'static> Drop for Pooled<C> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if self.tidy {
            self.pool.put_back(connection, self.made);
            return;
        }
        if !self.laden {
            self.tidy_up(connection, ());
        }
    }
}

impl<C: Connection + 'static> Deref for Pooled<C> {
    type Target = C;

    fn deref(&self) -> &C {
        self.connection.as_ref().expect("a loan holds its connection until it is dropped")
    }
}

impl<C: Connection + 'static> DerefMut for Pooled<C> {
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
