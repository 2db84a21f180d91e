//! Every node follows the rows: PostgreSQL notifies when one changes, and a
//! node polls in any case. It reports what it runs, for the others to read.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use super::super::App;
use super::{reconcile, rows};
use assurance_store::{self as store, NotificationListener};

/// Interval of heartbeats.
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// A node that was not seen for so long is forgotten.
const FORGET_MS: i64 = 10 * 60_000;

/// Follows the rows for as long as it is polled.
pub async fn follow(app: App) {
    let poll = Duration::from_millis(u64::from(app.config.areas.poll_ms));
    let (mut listener, mut reported) = (None, None);
    loop {
        if listener.is_none() {
            listener = app.store.notices().await.ok();
        }
        if let Err(error) = poll_once(&app, &mut reported).await {
            tracing::warn!(%error, "deployments cannot be read; the areas stay as they are");
        }
        tokio::select! {
            () = next_notification(&mut listener) => {}
            // This node has changed by itself.
            () = app.node.news() => reported = None,
            () = tokio::time::sleep(poll) => {}
        }
    }
}

/// Waits for a notification, for ever if none can come. A connection that broke
/// is dropped.
async fn next_notification(listener: &mut Option<NotificationListener>) {
    if let Some(notices) = listener {
        match notices.next().await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(%error, "no news of deployments; they are looked for regularly");
            }
        }
    }
    *listener = None;
    std::future::pending::<()>().await;
}

/// Catches up, and reports if anything changed or the heartbeat is due.
async fn poll_once(app: &App, reported: &mut Option<Instant>) -> Result<(), store::Error> {
    let changed = catch_up(app).await?;
    if changed || reported.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
        report(app).await?;
        *reported = Some(Instant::now());
    }
    Ok(())
}

/// Loads the live versions at start, and reports this node. A deployment waits
/// for the nodes that are known, so this is done before the process serves.
///
/// # Errors
/// The database is away.
pub async fn join(app: &App) -> Result<(), store::Error> {
    catch_up(app).await?;
    if let Err(error) = report(app).await {
        tracing::warn!(%error, "other nodes cannot see this one yet; it reports again");
    }
    Ok(())
}

/// Reads the rows and runs what they name. Returns whether anything was done or
/// failed.
///
/// # Errors
/// The database is away.
pub(super) async fn catch_up(app: &App) -> Result<bool, store::Error> {
    let guard = &app.node.staleness;
    // A node whose knowledge was stale serves again when it has caught up; one
    // whose knowledge was not goes on serving while it catches up.
    let was_sure = guard.is_sure();
    let (sent_at, desired) = rows::all(app).await?;
    let running = Box::pin(reconcile::run_live(app, &desired));
    let changed = if was_sure {
        guard.note_read(sent_at);
        staying_sure(app, running).await
    } else {
        let changed = running.await;
        guard.note_read(sent_at);
        changed
    };
    let begun = staying_sure(app, Box::pin(reconcile::begin_trials(app, &desired))).await;
    Ok(changed || begun)
}

/// Keeps reading the rows while some work goes on: a version may load for
/// longer than `areas.max_stale_ms`. The next poll acts on what was read.
async fn staying_sure<T>(app: &App, work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        never = keep_reading(app) => match never {},
    }
}

async fn keep_reading(app: &App) -> Infallible {
    loop {
        tokio::time::sleep(Duration::from_millis(u64::from(app.config.areas.poll_ms))).await;
        match rows::all(app).await {
            Ok((sent_at, _)) => app.node.staleness.note_read(sent_at),
            Err(error) => tracing::debug!(%error, "deployments cannot be read"),
        }
    }
}

/// Writes what this process runs.
async fn report(app: &App) -> Result<(), store::Error> {
    let now = app.clock.now();
    let reports = app.node.report(&app.registry.snapshot(), now);
    let (node, forget_before) = (&app.node, now.plus_ms(-FORGET_MS));
    let written = app.store.in_time(async {
        let mut tx = app.store.begin(store::Access::WriteLocked).await?;
        store::nodes::see(&mut tx, node.id(), node.host(), now).await?;
        store::nodes::report(&mut tx, node.id(), &reports, forget_before).await?;
        tx.commit().await
    });
    written.await
}

/// Deletes this process's reports when it ends.
///
/// # Errors
/// The database is away; the other nodes find that the heartbeats stopped.
pub async fn sign_off(app: &App) -> Result<(), store::Error> {
    let forget_before = app.clock.now().plus_ms(-FORGET_MS);
    let deleted = app.store.in_time(async {
        let mut tx = app.store.begin(store::Access::WriteLocked).await?;
        store::nodes::forget(&mut tx, app.node.id(), forget_before).await?;
        tx.commit().await
    });
    deleted.await
}
