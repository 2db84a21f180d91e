//! Commits units of work in groups, with one `fdatasync` for all: on PostgreSQL
//! by shared statements, on SQLite in shared transactions.
//!
//! On SQLite, a unit of work without an open transaction adds its effects to a
//! queue. One task at a time takes SQLite's write lock and applies all queued
//! units in savepoints, so that a unit that fails does not affect the others.
//! Units that only insert, by the same statements, share a
//! savepoint; if one of them fails, each is applied again by itself. Units that
//! arrive meanwhile form the next group.
//!
//! Invariant: a unit is acknowledged only after the commit of its group. If the
//! group itself fails, or if a unit panics, it is rolled back. Each of its units
//! is then committed in a separate transaction, so that each caller gets its own
//! error.

mod postgres;

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures::FutureExt as _;
use metrics::counter;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::apply::{self, Effects};
use super::connection::{SAVEPOINT, Tx};
use super::error::Error;
use super::{Backend, Store, TransactionAccess};
use postgres::SharedStatementQueues;

/// Maximum number of units of work in one group commit. On SQLite, other writers
/// wait until the group is committed.
const MAX_UNITS: usize = 64;

/// Numbers of units that share statements, largest first. Few, because each
/// number has statements of its own in the connection's cache.
const TOGETHER: [usize; 2] = [16, 4];

const GROUPS: &str = "assurance_database_group_commits_total";
const UNITS: &str = "assurance_database_group_commit_units_total";

/// Describes the metrics of group commits.
pub(super) fn describe_metrics() {
    metrics::describe_counter!(GROUPS, "Commits that groups of calls shared");
    metrics::describe_counter!(UNITS, "Calls committed by group commits");
}

/// Units of work that wait to be committed together.
#[derive(Debug)]
pub(super) struct GroupCommit {
    /// Those that wait for SQLite.
    queue: Mutex<Queue>,
    /// Those that wait for PostgreSQL.
    shared_statements: SharedStatementQueues,
    /// Runtime on which groups are committed, because a caller may run on a
    /// low-priority thread.
    runtime: Handle,
}

impl GroupCommit {
    /// Creates empty queues, whose groups are committed on the current runtime.
    pub(super) fn new() -> Self {
        let (queue, shared_statements) = Default::default();
        Self { queue, shared_statements, runtime: Handle::current() }
    }
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Unit>,
    /// Whether a task is committing groups.
    running: bool,
}

#[derive(Debug)]
struct Unit {
    effects: Effects,
    /// Equal for units that share statements; empty for one that does not.
    shape: String,
    since: Instant,
    done: oneshot::Sender<Result<u64, Error>>,
}

impl Unit {
    fn new(effects: Effects, done: oneshot::Sender<Result<u64, Error>>) -> Self {
        Self { shape: effects.insertion_shape(), effects, since: Instant::now(), done }
    }
}

impl Store {
    /// Commits a call's effects together with those of other waiting calls.
    /// Returns the number of requested deliveries that were enqueued; of calls
    /// that shared a statement, an equal share of all.
    ///
    /// # Errors
    /// The errors of [`apply::apply`]; the effects are then rolled back.
    pub async fn commit_in_group(&self, effects: Effects) -> Result<u64, Error> {
        if self.backend() == Backend::Postgres {
            return self.commit_in_statement(effects).await;
        }
        let (done, committed) = oneshot::channel();
        let unit = Unit::new(effects, done);
        {
            let groups = &self.0.group_commit;
            let mut queue = groups.queue.lock();
            queue.waiting.push_back(unit);
            if !std::mem::replace(&mut queue.running, true) {
                groups.runtime.spawn(commit_groups(self.clone()));
            }
        }
        committed.await.unwrap_or(Err(Error::Unavailable(sqlx::Error::WorkerCrashed)))
    }

    /// Removes units of work whose caller was cancelled, and returns whether
    /// any unit waits for a commit. If none does, the task must end, because
    /// the next unit starts another task.
    fn has_waiting_units(&self) -> bool {
        let mut queue = self.0.group_commit.queue.lock();
        queue.waiting.retain(|unit| !unit.done.is_closed());
        queue.running = !queue.waiting.is_empty();
        queue.running
    }

    /// Returns the units to be committed next; those that share statements are neighbors.
    fn next_group(&self) -> Vec<Unit> {
        let mut queue = self.0.group_commit.queue.lock();
        let units = queue.waiting.len().min(MAX_UNITS);
        let units = queue.waiting.drain(..units).filter(|unit| !unit.done.is_closed());
        let mut units: Vec<Unit> = units.collect();
        drop(queue);
        units.sort_by(|one, other| one.shape.cmp(&other.shape));
        units
    }

    /// Refuses the units of work that have waited for the write lock for the
    /// maximum time (`acquire_timeout_ms`). Later units continue to wait.
    fn refuse_overdue(&self) {
        let mut queue = self.0.group_commit.queue.lock();
        while let Some(unit) = queue.waiting.pop_front_if(|unit| self.is_overdue(unit)) {
            let _ = unit.done.send(Err(Error::Unavailable(sqlx::Error::PoolTimedOut)));
        }
    }

    fn is_overdue(&self, unit: &Unit) -> bool {
        unit.since.elapsed() >= self.0.timeout
    }
}

/// Commits groups of units of work until none waits.
async fn commit_groups(store: Store) {
    let _queue = QueueResetOnPanic(&store);
    while store.has_waiting_units() {
        // The group is taken after the write lock, so that units that arrive
        // while the task waits for the lock join it.
        match store.begin(TransactionAccess::WriteLocked).await {
            Ok(tx) => commit(&store, tx, store.next_group()).await,
            Err(error) if error.is_pool_timeout() => store.refuse_overdue(),
            // Another process held SQLite's lock for the busy timeout.
            Err(Error::RunAgain) => store.refuse_overdue(),
            Err(_) => commit_each(&store, store.next_group()).await,
        }
    }
}

/// Empties the queue if the task that commits groups panics: waiting units of work are refused,
/// and the next unit starts another task.
struct QueueResetOnPanic<'s>(&'s Store);

impl Drop for QueueResetOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0.0.group_commit.queue.lock() = Queue::default();
        }
    }
}

/// Commits a group. If that fails, or if a unit panics, commits each of its
/// units by itself, so that the units without a fault do not fail.
async fn commit(store: &Store, mut tx: Tx, units: Vec<Unit>) {
    let applied = caught(apply_all(&mut tx, &units)).await;
    // A panic of the commit itself is not caught: the units may be committed.
    let committed = match applied {
        Ok(results) => tx.commit().await.map(|()| results),
        Err(error) => {
            drop(tx);
            Err(error)
        }
    };
    let results = match committed {
        Ok(results) => results,
        Err(error) => {
            tracing::debug!(%error, "group commit failed; committing its units one by one");
            return commit_each(store, units).await;
        }
    };
    counter!(GROUPS).increment(1);
    counter!(UNITS).increment(results.iter().flatten().count() as u64);
    for (unit, result) in std::iter::zip(units, results) {
        // Fails if the caller was cancelled, which does not concern the commit.
        let _ = unit.done.send(result);
    }
}

/// Applies units of work in savepoints. Returns the result of each.
async fn apply_all(tx: &mut Tx, units: &[Unit]) -> Result<Vec<Result<u64, Error>>, Error> {
    let mut results = Vec::with_capacity(units.len());
    for mut alike in units.chunk_by(|one, next| !one.shape.is_empty() && one.shape == next.shape) {
        while !alike.is_empty() {
            let together = TOGETHER.into_iter().find(|units| *units <= alike.len()).unwrap_or(1);
            let (together, later) = alike.split_at(together);
            results.extend(apply_together(tx, together).await?);
            alike = later;
        }
    }
    Ok(results)
}

/// Returns [`sqlx::Error::WorkerCrashed`] if the work panics.
async fn caught<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let crashed = |_| Err(Error::Unavailable(sqlx::Error::WorkerCrashed));
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(crashed)
}

/// Commits each unit of work in a transaction of its own. After one that cannot
/// begin, refuses those that are overdue instead of waiting for each of them.
async fn commit_each(store: &Store, units: Vec<Unit>) {
    let mut is_locked = false;
    for unit in units {
        let tx = if is_locked && store.is_overdue(&unit) {
            Err(Error::Unavailable(sqlx::Error::PoolTimedOut))
        } else {
            store.begin(TransactionAccess::WriteLocked).await
        };
        is_locked = tx.is_err();
        let committed = async {
            let mut tx = tx?;
            let enqueued = apply::sqlite::apply(&mut tx, &[&unit.effects], "").await?;
            tx.commit().await?;
            Ok(enqueued)
        };
        let result = caught(committed).await;
        let _ = unit.done.send(result);
    }
}

/// Writes the effects of units of work together in a savepoint; if one of them
/// fails, each in a savepoint of its own. The inner results are those of the
/// units. An outer error is one after which SQLite may have rolled back the
/// whole transaction.
async fn apply_together(tx: &mut Tx, units: &[Unit]) -> Result<Vec<Result<u64, Error>>, Error> {
    let effects: Vec<&Effects> = units.iter().map(|unit| &unit.effects).collect();
    // The commit ends the savepoints of all units.
    let error = match apply::sqlite::apply(tx, &effects, SAVEPOINT).await {
        Ok(enqueued) => {
            let share = enqueued.div_ceil(units.len() as u64);
            return Ok(units.iter().map(|_| Ok(share)).collect());
        }
        Err(error) => error,
    };
    if !error.is_of_the_statement() {
        return Err(error);
    }
    tx.roll_back_to_savepoint().await?;
    if units.len() == 1 {
        return Ok(vec![Err(error)]);
    }
    let mut results = Vec::with_capacity(units.len());
    for unit in units {
        results.extend(Box::pin(apply_together(tx, std::slice::from_ref(unit))).await?);
    }
    Ok(results)
}

#[cfg(test)]
mod tests;
