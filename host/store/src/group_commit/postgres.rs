//! Writes units of work on PostgreSQL by shared statements.
//!
//! Units of one workspace and shape are written by one statement at a time, with
//! one commit. Units that arrive meanwhile share the next statement. If one of
//! them fails, the statement has no effect, and each of its units is written
//! again by itself, so that each caller gets its own error. Units of other
//! workspaces and shapes neither wait nor fail: they share nothing.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::io;

use metrics::counter;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::super::Store;
use super::super::apply::AutocommitOrTransaction::Autocommit;
use super::super::apply::{self, Effects};
use super::super::error::Error;
use super::{GROUPS, MAX_UNITS, UNITS, Unit, caught};
use assurance_core::domain::id::WorkspaceId;

/// Units of work that wait to be written, by workspace and shape. While there is
/// an entry, a task writes its units.
pub(super) type SharedStatementQueues = Mutex<HashMap<(WorkspaceId, String), VecDeque<Unit>>>;

impl Store {
    /// Commits a call's effects by a statement that other waiting calls of the
    /// workspace may share. Only for PostgreSQL. Returns the number of requested
    /// deliveries that were enqueued; of calls that shared the statement, an
    /// equal share of all.
    pub(super) async fn commit_in_statement(&self, effects: Effects) -> Result<u64, Error> {
        let (done, committed) = oneshot::channel();
        let unit = Unit::new(effects, done);
        if unit.shape.is_empty() {
            return self.write_units(&[&unit.effects]).await;
        }
        let groups = &self.0.group_commit;
        let key = (unit.effects.workspace, unit.shape.clone());
        match groups.shared_statements.lock().entry(key) {
            Entry::Occupied(mut queue) => queue.get_mut().push_back(unit),
            Entry::Vacant(none) => {
                groups.runtime.spawn(write_waiting(self.clone(), none.key().clone()));
                none.insert([unit].into());
            }
        }
        committed.await.unwrap_or(Err(Error::Unavailable(sqlx::Error::WorkerCrashed)))
    }

    async fn write_units(&self, units: &[&Effects]) -> Result<u64, Error> {
        let mut connection = self.serializable().await?;
        let enqueued = apply::postgres::apply(&mut connection, units, Autocommit).await?;
        connection.release();
        Ok(enqueued)
    }

    /// Returns the units to be written next, without those whose caller was
    /// cancelled. If there are none, the calling task must end, because the next
    /// unit starts another one.
    fn next_units(&self, key: &(WorkspaceId, String)) -> Vec<Unit> {
        let mut queues = self.0.group_commit.shared_statements.lock();
        let Some(queue) = queues.get_mut(key) else { return Vec::new() };
        queue.retain(|unit| !unit.done.is_closed());
        let units: Vec<Unit> = queue.drain(..queue.len().min(MAX_UNITS)).collect();
        if units.is_empty() {
            queues.remove(key);
        }
        units
    }
}

/// Writes units of one workspace and shape until none waits.
async fn write_waiting(store: Store, key: (WorkspaceId, String)) {
    loop {
        let units = store.next_units(&key);
        if units.is_empty() {
            return;
        }
        write(&store, units).await;
    }
}

/// Writes units by one statement; if one of them fails, each by itself.
async fn write(store: &Store, units: Vec<Unit>) {
    let effects: Vec<&Effects> = units.iter().map(|unit| &unit.effects).collect();
    let results: Vec<Result<u64, Error>> = match caught(store.write_units(&effects)).await {
        Ok(enqueued) => {
            counter!(GROUPS).increment(1);
            counter!(UNITS).increment(units.len() as u64);
            let share = enqueued.div_ceil(units.len() as u64);
            units.iter().map(|_| Ok(share)).collect()
        }
        Err(error) if units.len() == 1 => vec![Err(error)],
        Err(error) => match copies(&error, units.len()) {
            Some(copies) => copies.into_iter().map(Err).collect(),
            None => return write_each(store, units).await,
        },
    };
    for (unit, result) in std::iter::zip(units, results) {
        // Fails if the caller was cancelled, which does not concern the commit.
        let _ = unit.done.send(result);
    }
}

/// Writes each unit by itself, in the order in which they arrived.
async fn write_each(store: &Store, units: Vec<Unit>) {
    for unit in units {
        if !unit.done.is_closed() {
            let result = caught(store.write_units(&[&unit.effects])).await;
            let _ = unit.done.send(result);
        }
    }
}

/// Returns the error for each unit, if it is one of all: the workspace's gate is
/// closed, the statement was not sent, or it may have been committed. `None` for
/// other errors, after which nothing is written and each unit can be tried alone.
fn copies(error: &Error, units: usize) -> Option<Vec<Error>> {
    use sqlx::Error::{Io, PoolClosed, PoolTimedOut};
    let copy = || match error {
        Error::GateBusy => Some(Error::GateBusy),
        Error::Unavailable(PoolTimedOut) => Some(Error::Unavailable(PoolTimedOut)),
        Error::Unavailable(PoolClosed) => Some(Error::Unavailable(PoolClosed)),
        Error::Unavailable(sqlx::Error::Database(_) | sqlx::Error::WorkerCrashed) => None,
        Error::Unavailable(Io(cause)) => {
            Some(Error::Unavailable(Io(io::Error::new(cause.kind(), cause.to_string()))))
        }
        Error::Unavailable(other) => {
            Some(Error::Unavailable(Io(io::Error::other(other.to_string()))))
        }
        _ => None,
    };
    std::iter::repeat_with(copy).take(units).collect()
}
