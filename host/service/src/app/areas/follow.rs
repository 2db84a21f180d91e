//! Keeps this node on the versions that the database rows name. PostgreSQL
//! notifies the node of changes; in addition the node polls. The node also
//! writes a report of the versions that it runs.

use std::time::{Duration, Instant};

use futures::future::join_all;

use super::super::App;
use super::{reconcile, rows};
use assurance_store::{self as store, NotificationListener};

/// Interval between two reports of this node's running versions, which also
/// serve as heartbeats.
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// Time to wait until begun changes of areas have ended, before the rows are
/// read again.
const QUICK: Duration = Duration::from_millis(250);
/// Time after the last heartbeat of a node after which the node's reports are
/// deleted, in milliseconds.
const FORGET_MS: i64 = 10 * 60_000;

/// Keeps this node on the versions of areas that the database rows name, until
/// the future is dropped.
pub async fn follow(app: App) {
    let poll = Duration::from_millis(u64::from(app.config.areas.poll_ms));
    let (mut listener, mut reported) = (None, None);
    loop {
        if listener.is_none() {
            listener = app.store.notices().await.ok();
        }
        if let Err(error) = poll_once(&app, &mut reported).await {
            tracing::warn!(%error, "cannot read the live versions; the running versions stay");
        }
        tokio::select! {
            () = next_notification(&mut listener) => {}
            // This node's areas changed; a new report is due.
            () = app.node.news() => reported = None,
            () = tokio::time::sleep(poll) => {}
        }
    }
}

/// Waits for PostgreSQL's notification that rows of areas changed. Drops a
/// broken connection. Without a connection, never returns.
async fn next_notification(listener: &mut Option<NotificationListener>) {
    if let Some(notices) = listener {
        match notices.next().await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(%error, "lost the connection for deployment notifications; polling");
            }
        }
    }
    *listener = None;
    std::future::pending::<()>().await;
}

/// Reads the rows of areas and applies them to this node. Writes a report if
/// the node's areas changed or a heartbeat is due.
async fn poll_once(app: &App, reported: &mut Option<Instant>) -> Result<(), store::Error> {
    let changed = catch_up(app).await?;
    if changed || reported.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
        report(app).await?;
        *reported = Some(Instant::now());
    }
    Ok(())
}

/// Loads the live versions and writes this node's first report, at start. It
/// runs before the process serves requests, because a deployment waits for all
/// reported nodes.
///
/// # Errors
/// The database is unavailable.
pub async fn join(app: &App) -> Result<(), store::Error> {
    let (_, desired) = rows::all(app).await?;
    join_all(reconcile::run(app, &desired)).await;
    // Loading may have taken longer than `areas.max_stale_ms`.
    catch_up(app).await?;
    if let Err(error) = report(app).await {
        tracing::warn!(%error, "cannot write this node's report; retrying");
    }
    Ok(())
}

/// Reads the rows of areas and starts to run the versions that they name. A
/// change that takes longer than [`QUICK`] goes on in its task, so that it
/// delays no other area. Returns true if a change began.
///
/// # Errors
/// The database is unavailable.
pub(super) async fn catch_up(app: &App) -> Result<bool, store::Error> {
    let guard = &app.node.staleness;
    // If this node's knowledge of the live versions is too old, it serves again
    // only after all changes are applied. Otherwise it serves while they are
    // applied.
    let was_sure = guard.is_sure();
    let (sent_at, desired) = rows::all(app).await?;
    let changes = reconcile::run(app, &desired);
    let began = !changes.is_empty();
    if was_sure {
        guard.note_read(sent_at);
        let _ = tokio::time::timeout(QUICK, join_all(changes)).await;
    } else {
        join_all(changes).await;
        if reconcile::runs_live(app, &desired) {
            guard.note_read(sent_at);
        }
    }
    Ok(began)
}

/// Writes this node's report: the version of each area that it runs.
async fn report(app: &App) -> Result<(), store::Error> {
    let now = app.clock.now();
    let reports = app.node.report(&app.registry.snapshot(), now);
    let (node, forget_before) = (&app.node, now.plus_ms(-FORGET_MS));
    let written = app.store.in_time(async {
        let mut tx = app.store.begin(store::TransactionAccess::WriteLocked).await?;
        store::nodes::see(&mut tx, node.id, &node.host, now).await?;
        store::nodes::report(&mut tx, node.id, &reports, forget_before).await?;
        tx.commit().await
    });
    written.await
}

/// Deletes this node's report when the process ends.
///
/// # Errors
/// The database is unavailable; other nodes then ignore this node when its
/// heartbeats are too old.
pub async fn sign_off(app: &App) -> Result<(), store::Error> {
    let forget_before = app.clock.now().plus_ms(-FORGET_MS);
    let deleted = app.store.in_time(async {
        let mut tx = app.store.begin(store::TransactionAccess::WriteLocked).await?;
        store::nodes::forget(&mut tx, app.node.id, forget_before).await?;
        tx.commit().await
    });
    deleted.await
}
