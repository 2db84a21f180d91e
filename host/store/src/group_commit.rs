//! Commits units of work on SQLite in groups, with one `fdatasync` for all.
//!
//! A unit of work without an open transaction adds its effects to a queue. One
//! task at a time takes SQLite's write lock and applies all queued units, each
//! in a savepoint, so that a unit that fails does not affect the others. Units
//! that arrive meanwhile form the next group.
//!
//! Invariant: a unit is acknowledged only after the commit of its group. If the
//! group itself fails, or if a unit panics, it is rolled back. Each of its units
//! is then committed in a separate transaction, so that each caller gets its own
//! error.

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
use super::{Store, TransactionAccess};

/// Maximum number of units of work in one group commit. Other writers wait
/// until the group is committed.
const MAX_UNITS: usize = 64;

const GROUPS: &str = "assurance_database_group_commits_total";
const UNITS: &str = "assurance_database_group_commit_units_total";

/// Describes the metrics of group commits.
pub(super) fn describe_metrics() {
    metrics::describe_counter!(GROUPS, "Commits that groups of calls shared (SQLite)");
    metrics::describe_counter!(UNITS, "Calls committed by group commits (SQLite)");
}

/// Queue of units of work that wait to be committed together on SQLite.
#[derive(Debug)]
pub(super) struct GroupCommit {
    queue: Mutex<Queue>,
    /// Runtime on which groups are committed, because a caller may run on a
    /// low-priority thread.
    runtime: Handle,
}

impl GroupCommit {
    /// Creates an empty queue, whose groups are committed on the current
    /// runtime.
    pub(super) fn new() -> Self {
        Self { queue: Mutex::default(), runtime: Handle::current() }
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
    since: Instant,
    done: oneshot::Sender<Result<u64, Error>>,
}

impl Store {
    /// Commits a call's effects together with those of other waiting calls.
    /// Only for SQLite. Returns the number of requested deliveries that were
    /// enqueued.
    ///
    /// # Errors
    /// The errors of [`apply::apply`]; the effects are then rolled back.
    pub async fn commit_in_group(&self, effects: Effects) -> Result<u64, Error> {
        let (done, committed) = oneshot::channel();
        {
            let groups = &self.0.group_commit;
            let mut queue = groups.queue.lock();
            queue.waiting.push_back(Unit { effects, since: Instant::now(), done });
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

    fn next_group(&self) -> Vec<Unit> {
        let mut queue = self.0.group_commit.queue.lock();
        let units = queue.waiting.len().min(MAX_UNITS);
        queue.waiting.drain(..units).filter(|unit| !unit.done.is_closed()).collect()
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

/// Applies each unit of work in a savepoint. Returns the result of each.
async fn apply_all(tx: &mut Tx, units: &[Unit]) -> Result<Vec<Result<u64, Error>>, Error> {
    let mut results = Vec::with_capacity(units.len());
    for unit in units {
        results.push(apply_in_savepoint(tx, unit).await?);
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
            let enqueued = apply::sqlite::apply(&mut tx, &unit.effects, "").await?;
            tx.commit().await?;
            Ok(enqueued)
        };
        let result = caught(committed).await;
        let _ = unit.done.send(result);
    }
}

/// Writes the effects of one unit of work in a savepoint. The inner result is
/// that of the unit. An outer error is one after which SQLite may have rolled
/// back the whole transaction.
async fn apply_in_savepoint(tx: &mut Tx, unit: &Unit) -> Result<Result<u64, Error>, Error> {
    // The commit ends the savepoints of all units.
    let error = match apply::sqlite::apply(tx, &unit.effects, SAVEPOINT).await {
        Ok(enqueued) => return Ok(Ok(enqueued)),
        Err(error) => error,
    };
    if !error.is_of_the_statement() {
        return Err(error);
    }
    tx.roll_back_to_savepoint().await?;
    Ok(Err(error))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::apply::DocumentInsert;
    use crate::testing::{TestStore, execute, fresh, rows};
    use crate::{AccessibleCollection, Backend, Settings, Store, collections};
    use assurance_core::domain::id::{JobId, WorkspaceId};
    use assurance_core::domain::job::{JobRunEnd, JobRunEndKind};
    use assurance_core::domain::time::Timestamp;

    use super::*;

    fn unit(workspace: WorkspaceId, id: &str) -> Effects {
        let mut effects = Effects::new(workspace, "notes", Timestamp(1));
        let (collection, body) = ("notes.note".to_owned(), "{}".to_owned());
        effects.inserts.push(DocumentInsert { collection, id: id.to_owned(), version: 1, body });
        effects
    }

    /// Returns a store with the collection of the units.
    async fn with_collection() -> TestStore {
        let fresh = fresh(Backend::Sqlite).await.unwrap();
        let note = AccessibleCollection {
            full_name: "notes.note".into(),
            ..AccessibleCollection::default()
        };
        collections::ensure(&fresh.store, &[note]).await.unwrap();
        fresh
    }

    /// Commits units that all wait for the write lock at the same time.
    async fn together(store: &Store, units: Vec<Effects>) -> Vec<Result<u64, Error>> {
        let turn = store.begin(TransactionAccess::WriteLocked).await.unwrap();
        let units = units.into_iter().map(|effects| {
            let store = store.clone();
            tokio::spawn(async move { store.commit_in_group(effects).await })
        });
        let units: Vec<_> = units.collect();
        while store.0.group_commit.queue.lock().waiting.len() < units.len() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        turn.commit().await.unwrap();
        let ends = futures::future::join_all(units).await;
        ends.into_iter().map(Result::unwrap).collect()
    }

    async fn ids(store: &Store) -> Vec<String> {
        let mut reader = store.reader().await.unwrap();
        let ids = rows::<(String,)>(&mut reader, "SELECT id FROM \"notes.note\" ORDER BY id").await;
        reader.release();
        ids.into_iter().map(|(id,)| id).collect()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_unit_that_fails_takes_no_other_with_it() {
        let fresh = with_collection().await;
        let workspace = WorkspaceId::new();
        let lost = JobRunEnd {
            workspace,
            jobs: vec![JobId(uuid::Uuid::new_v4())],
            lease: uuid::Uuid::new_v4(),
            how: JobRunEndKind::Done { keep: false },
            progress: None,
        };
        let units = vec![
            unit(workspace, "a"),
            Effects { job_ends: vec![lost], ..unit(workspace, "b") },
            unit(workspace, "a"),
            unit(workspace, "c"),
        ];
        let ends = together(&fresh.store, units).await;
        assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 2, "{ends:?}");
        assert!(matches!(ends[1], Err(Error::LeaseLost)), "{ends:?}");
        let broken = ends.iter().filter_map(|end| end.as_ref().err()?.broken_constraint());
        assert_eq!(broken.collect::<Vec<_>>(), ["notes.note_pkey"]);
        assert_eq!(ids(&fresh.store).await, ["a", "c"]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_full_disk_loses_nothing_that_was_acknowledged() {
        let fresh = with_collection().await;
        let store = &fresh.store;
        let mut writer = store.writer().await.unwrap();
        execute(&mut writer, "PRAGMA max_page_count = 1").await;
        writer.release();
        let workspace = WorkspaceId::new();
        let units = (0..300).map(|n| {
            let mut effects = unit(workspace, &format!("{n:03}"));
            effects.inserts[0].body = format!("{{\"text\": \"{}\"}}", "x".repeat(2_000));
            effects
        });
        let ends = together(store, units.collect()).await;
        let full = ends.iter().filter(|end| matches!(end, Err(Error::Full(_)))).count();
        let kept = ends.iter().filter(|end| end.is_ok()).count();
        assert!(full > 0 && full + kept == 300, "{full} full, {kept} kept");
        assert_eq!(ids(store).await.len(), kept);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_unit_that_panics_takes_no_other_with_it() {
        let fresh = with_collection().await;
        let (store, workspace) = (&fresh.store, WorkspaceId::new());
        let mut panics = unit(workspace, "a");
        // The name of its table would be cut inside a character.
        panics.inserts[0].collection = format!("a{}", "é".repeat(40));
        let units = vec![unit(workspace, "b"), panics, unit(workspace, "c")];
        let ends = together(store, units).await;
        assert!(matches!(&ends[1], Err(error) if error.is_crash()), "{ends:?}");
        assert!(ends[0].is_ok() && ends[2].is_ok(), "a panic of another unit: {ends:?}");
        let later = store.commit_in_group(unit(workspace, "d"));
        let later = tokio::time::timeout(Duration::from_secs(5), later).await;
        later.expect("a task commits it").unwrap();
        assert_eq!(ids(store).await, ["b", "c", "d"]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn overdue_units_do_not_wait_one_by_one_for_another_process() {
        let fresh = with_collection().await;
        let settings = Settings { acquire_timeout_ms: 200, ..fresh.settings.clone() };
        let store = Store::open(&settings).await.unwrap();
        let mut writer = store.writer().await.unwrap();
        execute(&mut writer, "PRAGMA busy_timeout = 300").await;
        writer.release();
        let workspace = WorkspaceId::new();
        let other = fresh.store.begin(TransactionAccess::WriteLocked).await.unwrap();
        let begun = Instant::now();
        let units = (0..20).map(|n| store.commit_in_group(unit(workspace, &n.to_string())));
        for refused in futures::future::join_all(units).await {
            assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
        }
        let units = (0..20).map(|n| Unit {
            effects: unit(workspace, &n.to_string()),
            since: Instant::now(),
            done: oneshot::channel().0,
        });
        commit_each(&store, units.collect::<Vec<_>>()).await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        other.commit().await.unwrap();
        assert!(ids(&fresh.store).await.is_empty());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_closed_store_refuses_units_at_once() {
        let fresh = with_collection().await;
        fresh.store.close().await;
        let refused = fresh.store.commit_in_group(unit(WorkspaceId::new(), "a"));
        let refused = tokio::time::timeout(Duration::from_secs(5), refused).await;
        assert!(matches!(refused, Ok(Err(Error::Unavailable(_)))), "{refused:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_caller_that_has_gone_leaves_all_of_its_unit_or_nothing() {
        let fresh = with_collection().await;
        let (store, workspace) = (&fresh.store, WorkspaceId::new());
        let turn = store.begin(TransactionAccess::WriteLocked).await.unwrap();
        let gone = store.commit_in_group(unit(workspace, "gone"));
        assert!(tokio::time::timeout(Duration::from_millis(5), gone).await.is_err());
        turn.commit().await.unwrap();
        store.commit_in_group(unit(workspace, "stays")).await.unwrap();
        assert_eq!(ids(store).await, ["stays"]);
    }
}
