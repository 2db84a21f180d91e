//! What keeps the queue healthy beside running it: the process's sign of
//! life, the jobs of processes that gave none, and what nobody asks for any
//! more: old jobs, kept answers, blobs without a name.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Shared, report};
use crate::domain::job::Lane;
use crate::domain::time::Timestamp;
use crate::store;

/// Between two sweeps of old jobs.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Between two sweeps of blobs that no row names.
const SWEEP_BLOBS_EVERY: Duration = Duration::from_secs(3_600);
/// No call takes so long from writing a blob to naming it.
const UNNAMED_BLOBS_LIVE_MS: i64 = 24 * 3_600_000;
/// Mails are counted by the day.
const MAIL_COUNTS_LIVE_MS: i64 = 24 * 3_600_000;
/// Kept answers deleted in one batch.
const ANSWERS: u32 = 1_000;
/// Between two counts of the lanes, which cost the more the deeper they are.
const COUNT_EVERY: Duration = Duration::from_secs(15);
/// Between two tries of a sign of life that did not get through.
const PAUSE: Duration = Duration::from_millis(500);
/// One sweep deletes so many batches at most.
const BATCHES: u32 = 20;

/// Gives signs of life for as long as it is polled.
pub(super) async fn heart(shared: Arc<Shared>) {
    let every = Duration::from_millis(u64::from(shared.deps.settings.heartbeat_ms));
    let mut pause = every;
    loop {
        tokio::time::sleep(pause).await;
        pause = match beat(&shared).await {
            Ok(()) => every,
            Err(error) => {
                tracing::warn!(%error, "no sign of life could be given; jobs may be lost to others");
                every.min(PAUSE)
            }
        };
    }
}

/// One sign of life: this process's leases are good for another while.
pub(super) async fn beat(shared: &Shared) -> Result<(), store::Error> {
    let deps = &shared.deps;
    let mut connection = deps.store.writer().await?;
    let now = store::jobs::lease_clock(&mut connection, deps.clock.now()).await?;
    let expires_at = now.plus_ms(i64::from(deps.settings.lease_ms));
    store::jobs::heartbeat(&mut connection, shared.worker, expires_at).await?;
    connection.release();
    Ok(())
}

/// Looks after the queue for as long as it is polled.
pub(super) async fn tidying(shared: Arc<Shared>) {
    let every = Duration::from_millis(u64::from(shared.deps.settings.heartbeat_ms));
    let (mut counted, mut swept, mut swept_blobs) = (None, None, None);
    loop {
        if let Err(error) = recover(&shared).await {
            tracing::warn!(%error, "lost jobs could not be looked for");
        }
        if is_time(&mut counted, COUNT_EVERY)
            && let Err(error) = count(&shared).await
        {
            tracing::warn!(%error, "jobs could not be counted");
        }
        if is_time(&mut swept, SWEEP_EVERY)
            && let Err(error) = sweep(&shared).await
        {
            tracing::warn!(%error, "old jobs and answers could not be deleted");
        }
        if is_time(&mut swept_blobs, SWEEP_BLOBS_EVERY)
            && let Err(error) = sweep_blobs(&shared).await
        {
            tracing::warn!(%error, "blobs without a name could not be deleted");
        }
        tokio::time::sleep(every).await;
    }
}

/// At the first question, and then once in each interval.
fn is_time(last: &mut Option<Instant>, every: Duration) -> bool {
    let due = last.is_none_or(|at| at.elapsed() >= every);
    if due {
        *last = Some(Instant::now());
    }
    due
}

async fn recover(shared: &Shared) -> Result<(), store::Error> {
    let deps = &shared.deps;
    let mut connection = deps.store.writer().await?;
    let now = store::jobs::lease_clock(&mut connection, deps.clock.now()).await?;
    let recovered = store::jobs::recover(&mut connection, now).await?;
    connection.release();
    if recovered > 0 {
        tracing::warn!(jobs = recovered, "a worker was lost; its jobs run again");
        Lane::ALL.into_iter().for_each(|lane| deps.store.wake().ring(lane));
    }
    Ok(())
}

async fn count(shared: &Shared) -> Result<(), store::Error> {
    let deps = &shared.deps;
    let mut connection = deps.store.reader().await?;
    let depths = store::jobs::depths(&mut connection).await?;
    connection.release();
    report::depths(&depths);
    Ok(())
}

async fn sweep(shared: &Shared) -> Result<(), store::Error> {
    let deps = &shared.deps;
    let now = database_time(shared).await?;
    let kept = |ms: i64| now.plus_ms(-ms);
    let succeeded = kept(i64::from(deps.settings.keep_succeeded_minutes) * 60_000);
    let failed = kept(i64::from(deps.settings.keep_failed_hours) * 3_600_000);
    for _ in 0..BATCHES {
        // A connection for each batch: others have their turn in between.
        let mut connection = deps.store.writer().await?;
        let swept = store::jobs::sweep(&mut connection, succeeded, failed).await?;
        connection.release();
        if swept < store::jobs::ROWS_PER_SWEEP {
            break;
        }
    }
    let mut connection = deps.store.writer().await?;
    store::mail_counts::sweep(&mut connection, now.plus_ms(-MAIL_COUNTS_LIVE_MS)).await?;
    connection.release();
    sweep_answers(shared).await
}

/// The moment by which things expire for all nodes.
async fn database_time(shared: &Shared) -> Result<Timestamp, store::Error> {
    let deps = &shared.deps;
    let mut connection = deps.store.reader().await?;
    let now = store::jobs::lease_clock(&mut connection, deps.clock.now()).await?;
    connection.release();
    Ok(now)
}

/// Kept answers whose time is over.
async fn sweep_answers(shared: &Shared) -> Result<(), store::Error> {
    let deps = &shared.deps;
    for _ in 0..BATCHES {
        let mut connection = deps.store.writer().await?;
        let now = store::jobs::lease_clock(&mut connection, deps.clock.now()).await?;
        let swept = store::idempotency::sweep(&mut connection, now, ANSWERS).await?;
        connection.release();
        if swept < u64::from(ANSWERS) {
            break;
        }
    }
    Ok(())
}

async fn sweep_blobs(shared: &Shared) -> Result<(), store::Error> {
    let deps = &shared.deps;
    // A folder's files bear this machine's time, which may be behind.
    let behind_ms = deps.clock.wall_clock_ahead_ms().min(0);
    let written_before = database_time(shared).await?.plus_ms(behind_ms - UNNAMED_BLOBS_LIVE_MS);
    let swept = store::blobs::sweep(&deps.store, written_before).await?;
    if swept > 0 {
        tracing::info!(blobs = swept, "deleted blobs without a name");
    }
    Ok(())
}

/// Gives back whatever this process still holds, and its name.
pub(super) async fn sign_off(shared: &Shared) -> Result<(), store::Error> {
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
    use std::path::PathBuf;
    use std::sync::atomic::AtomicI64;

    use tokio_util::sync::CancellationToken;
    use uuid::Uuid;

    use super::*;
    use crate::config;
    use crate::domain::id::{UserId, WorkspaceId};
    use crate::domain::time::Clock;
    use crate::jobs::{Areas, Deps};
    use crate::recordings::Recordings;
    use crate::secrets::Keys;
    use crate::store::idempotency::{self, IdempotentReply};
    use crate::store::testing::fresh;
    use crate::store::{Access, Backend, Store};

    const HOUR_MS: i64 = 3_600_000;

    /// A node whose clock shows another time than the database's.
    fn node(store: &Store, clock: Clock) -> Shared {
        Shared {
            deps: Deps {
                store: store.clone(),
                keys: Arc::new(Keys::new([7; 32])),
                clock,
                areas: Areas { names: Arc::new(Vec::new), find: Arc::new(|_, _| None) },
                settings: config::Jobs::default(),
                recordings: Recordings::open(config::Record::default(), PathBuf::new()).unwrap(),
            },
            worker: Uuid::new_v4(),
            stop: CancellationToken::new(),
            abandon: CancellationToken::new(),
        }
    }

    #[tokio::test]
    async fn a_node_whose_clock_is_a_day_ahead_deletes_no_response_that_others_keep() {
        let Some(fresh) = fresh(Backend::Postgres).await else { return };
        let store = &fresh.store;
        let now = store::health::clock(store).await.unwrap().now();
        let kept = IdempotentReply {
            workspace: WorkspaceId::new(),
            user: UserId::new(),
            operation: "create_note".into(),
            key: "key-00000001".into(),
            fingerprint: [0; 32],
            status: 201,
            body: None,
            version: None,
            expires_at: now.plus_ms(24 * HOUR_MS),
        };
        let mut tx = store.begin(Access::WriteLocked).await.unwrap();
        idempotency::keep(&mut tx, kept.clone(), now).await.unwrap();
        tx.commit().await.unwrap();
        let ahead = Arc::new(AtomicI64::new(now.plus_ms(25 * HOUR_MS).0));
        sweep(&node(store, Clock::Manual(ahead))).await.unwrap();
        let IdempotentReply { workspace, user, operation, key, .. } = &kept;
        let found = idempotency::find(store, *workspace, *user, operation, key, now).await.unwrap();
        assert_eq!(found, Some(kept));
    }
}
