//! Maintenance of the queue: sends heartbeats, returns the jobs of lost processes to the queue, and
//! deletes old jobs, expired stored responses and unreferenced blobs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{WorkerState, report};
use assurance_core::domain::job::Lane;
use assurance_core::domain::time::Timestamp;
use assurance_store as store;

/// Interval between two deletions of old jobs, old mail counts and expired stored responses.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Interval between two deletions of unreferenced blobs.
const SWEEP_BLOBS_EVERY: Duration = Duration::from_secs(3_600);
/// Age at which a blob that no row references is deleted, in milliseconds. No call needs this long
/// between writing a blob and referencing it.
const UNREFERENCED_BLOB_AGE_MS: i64 = 24 * 3_600_000;
/// Age at which counts of sent mails are deleted, in milliseconds. Mail limits count days.
const MAIL_COUNTS_LIVE_MS: i64 = 24 * 3_600_000;
/// Maximum number of expired stored responses that are deleted in one batch.
const RESPONSES_PER_BATCH: u32 = 1_000;
/// Interval between two counts of the jobs of all lanes. A count is slower for longer queues.
const COUNT_EVERY: Duration = Duration::from_secs(15);
/// Wait after a failed heartbeat before the next one.
const PAUSE: Duration = Duration::from_millis(500);

/// Sends heartbeats, which extend the leases of this process's jobs, until the future is dropped.
pub(super) async fn renew_leases(shared: Arc<WorkerState>) {
    let every = Duration::from_millis(u64::from(shared.deps.settings.heartbeat_ms));
    let mut pause = every;
    loop {
        tokio::time::sleep(pause).await;
        pause = match send_heartbeat(&shared).await {
            Ok(()) => every,
            Err(error) => {
                tracing::warn!(
                    %error,
                    "heartbeat failed; other nodes may take over this node's jobs"
                );
                every.min(PAUSE)
            }
        };
    }
}

/// Sends one heartbeat, which extends the leases of this process's jobs.
pub(super) async fn send_heartbeat(shared: &WorkerState) -> Result<(), store::Error> {
    let deps = &shared.deps;
    let sending = deps.store.write(async |c| {
        let now = store::jobs::lease_clock(c, deps.clock.now()).await?;
        let expires_at = now.plus_ms(i64::from(deps.settings.lease_ms));
        store::jobs::heartbeat(c, shared.worker, expires_at).await
    });
    match deps.store.backend() {
        store::Backend::Sqlite => sending.await,
        // The leases expire before the time limit of a statement whose server has vanished.
        store::Backend::Postgres => deps.store.in_time(sending).await,
    }
}

/// Returns the jobs of lost processes to the queue, and counts the jobs of each lane, until the
/// future is dropped.
pub(super) async fn maintain(shared: Arc<WorkerState>) {
    let every = Duration::from_millis(u64::from(shared.deps.settings.heartbeat_ms));
    let mut counted = None;
    loop {
        if let Err(error) = recover(&shared).await {
            tracing::warn!(%error, "cannot search for jobs of lost processes");
        }
        if is_due(&mut counted, COUNT_EVERY)
            && let Err(error) = count(&shared).await
        {
            tracing::warn!(%error, "cannot count jobs");
        }
        // More often: until then, plans read all documents of a new collection.
        match store::collections::refresh_statistics(&shared.deps.store).await {
            Ok(0) => {}
            Ok(collections) => {
                tracing::debug!(collections, "statistics of grown collections refreshed");
            }
            Err(error) => tracing::warn!(%error, "cannot refresh statistics of collections"),
        }
        tokio::time::sleep(every).await;
    }
}

/// Deletes old jobs and expired stored responses until the future is dropped.
pub(super) async fn delete_old_rows(shared: Arc<WorkerState>) {
    loop {
        if let Err(error) = sweep(&shared).await {
            tracing::warn!(%error, "cannot delete old jobs and stored responses");
        }
        tokio::time::sleep(SWEEP_EVERY).await;
    }
}

/// Deletes unreferenced blobs until the future is dropped. A run lists the whole blob store, which
/// may take minutes.
pub(super) async fn delete_old_blobs(shared: Arc<WorkerState>) {
    loop {
        if let Err(error) = sweep_blobs(&shared).await {
            tracing::warn!(%error, "cannot delete unreferenced blobs");
        }
        tokio::time::sleep(SWEEP_BLOBS_EVERY).await;
    }
}

/// Returns true at the first call, and then at most once in each interval. `last` is when it last
/// returned true.
fn is_due(last: &mut Option<Instant>, every: Duration) -> bool {
    let due = last.is_none_or(|at| at.elapsed() >= every);
    if due {
        *last = Some(Instant::now());
    }
    due
}

/// Returns the jobs of lost processes to the queue, and those that this process has claimed and
/// does not run.
async fn recover(shared: &WorkerState) -> Result<(), store::Error> {
    let deps = &shared.deps;
    let mut connection = deps.store.writer().await?;
    let now = store::jobs::lease_clock(&mut connection, deps.clock.now()).await?;
    let recovered = store::jobs::recover(&mut connection, shared.worker, now).await?;
    let wake = |jobs: u64, why: &str| {
        if jobs > 0 {
            tracing::warn!(jobs, "{why}; its jobs are queued again");
            Lane::ALL.into_iter().for_each(|lane| deps.store.wake().wake(lane, deps.clock.now()));
        }
    };
    wake(recovered, "a worker process was lost");
    let released = release_unused(shared, &mut connection, now).await?;
    connection.release();
    wake(released, "a failed claim was committed");
    Ok(())
}

/// Releases the jobs whose lease belongs to this process and is not in use. Returns their number.
async fn release_unused(
    shared: &WorkerState,
    connection: &mut store::Connection,
    now: Timestamp,
) -> Result<u64, store::Error> {
    let mut released = 0;
    // Read first: a lease is in use before its jobs are claimed. So if one of these is not in use,
    // its use has ended.
    let leases = store::jobs::leases_of(connection, shared.worker).await?;
    for lease in leases.into_iter().filter(|lease| !shared.leases.contains(*lease)) {
        released += store::jobs::release(connection, shared.worker, Some(lease), now).await?;
    }
    Ok(released)
}

async fn count(shared: &WorkerState) -> Result<(), store::Error> {
    let deps = &shared.deps;
    let mut connection = deps.store.reader().await?;
    let now = store::jobs::lease_clock(&mut connection, deps.clock.now()).await?;
    let depths = store::jobs::depths(&mut connection).await?;
    let failed = store::jobs::failed(&mut connection).await?;
    connection.release();
    report::depths(&depths, now);
    report::failed(&failed);
    let waiting = depths.values().map(|depth| depth.waiting).sum();
    if store::jobs::refresh_statistics(&deps.store, waiting).await? {
        tracing::debug!(waiting, "statistics of the queue refreshed");
    }
    Ok(())
}

async fn sweep(shared: &WorkerState) -> Result<(), store::Error> {
    let deps = &shared.deps;
    let now = database_time(shared).await?;
    let kept = |ms: i64| now.plus_ms(-ms);
    let succeeded = kept(i64::from(deps.settings.keep_succeeded_minutes) * 60_000);
    let failed = kept(i64::from(deps.settings.keep_failed_hours) * 3_600_000);
    // Uses a new connection for each batch, so that other tasks can write in between.
    let batch = || deps.store.write(async |c| store::jobs::sweep(c, succeeded, failed).await);
    while batch().await? >= store::jobs::ROWS_PER_SWEEP {
        tokio::task::yield_now().await;
    }
    let mails_before = now.plus_ms(-MAIL_COUNTS_LIVE_MS);
    deps.store.write(async |c| store::mail_counts::sweep(c, mails_before).await).await?;
    let batch =
        || deps.store.write(async |c| store::idempotency::sweep(c, now, RESPONSES_PER_BATCH).await);
    while batch().await? >= u64::from(RESPONSES_PER_BATCH) {
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Returns the database's time, by which leases, jobs and stored responses of all nodes expire.
async fn database_time(shared: &WorkerState) -> Result<Timestamp, store::Error> {
    let deps = &shared.deps;
    deps.store.read(async |c| store::jobs::lease_clock(c, deps.clock.now()).await).await
}

async fn sweep_blobs(shared: &WorkerState) -> Result<(), store::Error> {
    let deps = &shared.deps;
    // File times come from this machine's clock, which may be behind the database's.
    let behind_ms = deps.clock.wall_clock_ahead_ms().min(0);
    let written_before = database_time(shared).await?.plus_ms(behind_ms - UNREFERENCED_BLOB_AGE_MS);
    let swept = store::blobs::sweep(&deps.store, written_before).await?
        + store::blobs::sweep_partial(&deps.store, written_before).await?;
    if swept > 0 {
        tracing::info!(blobs = swept, "deleted unreferenced blobs");
    }
    Ok(())
}

/// Releases all leases of this process's jobs and deletes the process's row. Called when the
/// workers have stopped.
pub(super) async fn deregister(shared: &WorkerState) -> Result<(), store::Error> {
    let deps = &shared.deps;
    let now = deps.clock.now();
    let mut connection = deps.store.writer().await?;
    store::jobs::release(&mut connection, shared.worker, None, now).await?;
    let now = store::jobs::lease_clock(&mut connection, now).await?;
    let long_ago = now.plus_ms(-10 * i64::from(deps.settings.lease_ms));
    store::jobs::forget_worker(&mut connection, shared.worker, long_ago).await?;
    connection.release();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use uuid::Uuid;

    use super::*;
    use crate::jobs::tests::{areas, deps};
    use crate::testing::stored_reply;
    use assurance_core::config;
    use assurance_core::domain::time::Clock;
    use assurance_store::idempotency::{self, StoredReply};
    use assurance_store::jobs::ClaimRequest;
    use assurance_store::testing::{self, fresh, job, on_both};
    use assurance_store::{Backend, Store, TransactionAccess};

    const HOUR_MS: i64 = 3_600_000;

    /// Returns the worker state of a node whose clock differs from the database's.
    fn node(store: &Store, clock: Clock) -> WorkerState {
        let settings = config::JobsConfig::default();
        WorkerState::new(deps(store, clock, areas(&Arc::default()), settings))
    }

    /// Inserts a job and claims it for a node.
    async fn claim(node: &WorkerState, n: u128, lease: Uuid) {
        let (job, now) = (job(n), Timestamp(1));
        let request = ClaimRequest {
            lane: job.lane,
            flows: &[(job.flow(), 1)],
            areas: std::slice::from_ref(&job.area),
            worker: node.worker,
            lease,
        };
        let claiming = node.deps.store.write(async |c| {
            store::jobs::insert(c, std::slice::from_ref(&job), now).await?;
            store::jobs::claim(c, request, now).await
        });
        assert_eq!(claiming.await.unwrap().len(), 1);
    }

    /// Returns the statuses of all jobs, sorted by id.
    async fn statuses(store: &Store) -> Vec<String> {
        let mut connection = store.reader().await.unwrap();
        let statuses = "SELECT status FROM jobs ORDER BY id";
        let rows = testing::rows::<(String,)>(&mut connection, statuses).await;
        rows.into_iter().map(|(status,)| status).collect()
    }

    on_both! {
        async fn a_node_with_a_late_heartbeat_keeps_its_own_running_jobs(store: &Store) {
            let (own, other) = (node(store, Clock::System), node(store, Clock::System));
            let lease = own.leases.begin();
            claim(&own, 1, lease.id).await;
            recover(&own).await.unwrap();
            assert_eq!(statuses(store).await, ["running"]);
            recover(&other).await.unwrap();
            assert_eq!(statuses(store).await, ["retrying"]);
        }

        async fn jobs_of_a_failed_claim_that_was_committed_are_released(store: &Store) {
            let node = node(store, Clock::System);
            let lease = node.leases.begin();
            claim(&node, 1, lease.id).await;
            claim(&node, 2, Uuid::new_v4()).await;
            recover(&node).await.unwrap();
            assert_eq!(statuses(store).await, ["running", "queued"]);
            drop(lease);
            recover(&node).await.unwrap();
            assert_eq!(statuses(store).await, ["queued", "queued"]);
        }
    }

    /// Number of old rows that the test inserts: more than twenty batches of a sweep delete.
    const MANY: u32 = 20_001;

    /// Inserts [`MANY`] ended jobs and as many expired stored responses.
    async fn insert_old_rows(store: &Store) {
        let numbers = format!(
            "WITH RECURSIVE numbers (n) AS \
             (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {MANY})"
        );
        let id = "randomblob(16)";
        let jobs = format!(
            "INSERT INTO jobs (workspace_id, id, area, kind, lane, payload, max_attempts, \
             timeout_ms, available_at, created_at, updated_at, status, attempts) {numbers} \
             SELECT zeroblob(16), {id}, 'notes', 'tidy', 'delivery', '{{}}', 1, 1, 0, 0, 0, \
             'succeeded', 1 FROM numbers"
        );
        let responses = format!(
            "INSERT INTO idempotency (workspace_id, user_id, operation, key, fingerprint, status, \
             expires_at) {numbers} SELECT zeroblob(16), {id}, 'create_note', 'key', zeroblob(32), \
             201, 0 FROM numbers"
        );
        let mut connection = store.writer().await.unwrap();
        for sql in [jobs, responses] {
            testing::execute(&mut connection, &sql).await;
        }
        connection.release();
    }

    #[tokio::test]
    async fn a_sweep_deletes_all_that_is_old() {
        let fresh = fresh(Backend::Sqlite).await.unwrap();
        insert_old_rows(&fresh.store).await;
        sweep(&node(&fresh.store, Clock::System)).await.unwrap();
        let mut connection = fresh.store.reader().await.unwrap();
        let left = "SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM idempotency)";
        assert_eq!(testing::rows::<(i64, i64)>(&mut connection, left).await, [(0, 0)]);
    }

    #[tokio::test]
    async fn a_node_whose_clock_is_a_day_ahead_deletes_no_response_that_others_keep() {
        let Some(fresh) = fresh(Backend::Postgres).await else { return };
        let store = &fresh.store;
        let now = store::health::clock(store).await.unwrap().now();
        let kept = StoredReply { expires_at: now.plus_ms(24 * HOUR_MS), ..stored_reply() };
        let mut tx = store.begin(TransactionAccess::WriteLocked).await.unwrap();
        idempotency::keep(&mut tx, kept.clone(), now).await.unwrap();
        tx.commit().await.unwrap();
        let ahead = Arc::new(AtomicI64::new(now.plus_ms(25 * HOUR_MS).0));
        sweep(&node(store, Clock::Manual(ahead))).await.unwrap();
        let StoredReply { workspace, user, operation, key, .. } = &kept;
        let found = idempotency::find(store, *workspace, *user, operation, key, now).await.unwrap();
        assert_eq!(found, Some(kept));
    }
}
