//! Readiness checks of this node. The checks run at most once a second; all probes in that second
//! get the same report.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::App;
use assurance_core::domain::health::{HealthCheckName, HealthReport, OK};
use assurance_store::documents_move::{self, MoveProgress};
use assurance_store::{self as store, health, installation};

/// Time for which a health report is reused.
const REPORT_LIFETIME: Duration = Duration::from_secs(1);
/// Timeout of each health check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of load failures that the `areas` line of a health report names; the rest is
/// counted.
const AREAS_NAMED: usize = 5;

/// The last health report and the test write in progress.
#[derive(Debug, Default)]
pub struct HealthCheckState {
    /// Locked while the checks run, so that concurrent probes share one run.
    last: Mutex<Option<(Instant, Arc<HealthReport>)>>,
    writes: Mutex<WriteProbe>,
}

/// A test write to the database. It may wait longer for the database than a check's timeout. The
/// check then reports the result of the previous write, and the write in progress continues.
#[derive(Debug, Default)]
struct WriteProbe {
    under_way: Option<JoinHandle<Result<(), store::Error>>>,
    last: Option<Result<(), String>>,
}

/// Runs all readiness checks, or returns the last report if it is less than a second old.
pub async fn check(app: &App) -> Arc<HealthReport> {
    let mut last = app.health.last.lock().await;
    if let Some((at, report)) = &*last
        && at.elapsed() < REPORT_LIFETIME
    {
        return Arc::clone(report);
    }
    let report = Arc::new(run(app).await);
    let before = last.as_ref().map(|(_, before)| before.as_ref());
    log_changes(before, &report);
    *last = Some((Instant::now(), Arc::clone(&report)));
    report
}

async fn run(app: &App) -> HealthReport {
    let blobs = in_time(app.store.blobs().ping(), "the blob store");
    let (database, writes, blobs) = tokio::join!(check_database(app), write(app), blobs);
    let (database, migration) = database;
    let mut checks = BTreeMap::from(database);
    checks.extend([
        (HealthCheckName::Serving, OK.to_owned()),
        (HealthCheckName::Writes, line(writes)),
        (HealthCheckName::Areas, line(areas(app))),
        (HealthCheckName::Clock, line(clock(app))),
        (HealthCheckName::Blobs, line(blobs)),
    ]);
    HealthReport { migration, ..HealthReport::new(checks, &app.config.readiness.degraded_by) }
}

/// Returns the results of the checks that read from the database, and the progress of a migration;
/// `None` if no migration is running.
async fn check_database(app: &App) -> ([(HealthCheckName, String); 3], Option<String>) {
    use HealthCheckName::{Database, MasterKey, Schema};
    let asked = app.store.read(async |c| {
        health::measure(c, &app.clock).await?;
        let key = installation::key_check(c).await?;
        let newer = health::newer_migration(c).await?;
        Ok((key, newer, documents_move::progress(c).await?))
    });
    let (key, newer, moving) = match in_time(asked, "the database").await {
        Ok(found) => found,
        Err(away) => {
            let unknown = "not checked: the database is unavailable".to_owned();
            return ([(Database, away), (MasterKey, unknown.clone()), (Schema, unknown)], None);
        }
    };
    let master_key = master_key(app, key.as_deref());
    let schema = newer.map_or(Ok(()), |version| {
        Err(format!(
            "a newer release has applied migration {version}; upgrade this node to that release"
        ))
    });
    let checks = [(Database, OK.to_owned()), (MasterKey, line(master_key)), (Schema, line(schema))];
    (checks, moving.map(moving_line))
}

/// Checks that the database's check value is that of this node's master key.
fn master_key(app: &App, check_value: Option<&[u8]>) -> Result<(), String> {
    if check_value == Some(&app.keys.check_value()[..]) {
        return Ok(());
    }
    let problem =
        "the database is used with another master key; give this node that key and restart it";
    Err(problem.to_owned())
}

/// Describes the progress of the migration that copies documents into tables of their collections.
/// The database may not have estimated their total yet.
fn moving_line(MoveProgress { copied, total }: MoveProgress) -> String {
    if total == 0 {
        return "documents are being copied into tables of their collections; their number is not \
            known yet"
            .to_owned();
    }
    format!("{copied} of {total} documents are copied into tables of their collections")
}

async fn in_time<T, E: Display>(
    asked: impl Future<Output = Result<T, E>>,
    whom: &str,
) -> Result<T, String> {
    match timeout(CHECK_TIMEOUT, asked).await {
        Ok(answered) => answered.map_err(|error| error.to_string()),
        Err(_) => Err(format!("{whom} did not respond within {} s", CHECK_TIMEOUT.as_secs())),
    }
}

/// Commits a small test write. If it does not finish in time, returns the result of the previous
/// one. Failing writes of requests take precedence over the test write.
async fn write(app: &App) -> Result<(), String> {
    let mut writes = app.health.writes.lock().await;
    let under_way = writes.under_way.get_or_insert_with(|| {
        let app = app.clone();
        tokio::spawn(async move {
            let (node, now) = (&app.node, app.clock.now());
            app.store.in_time(health::check_write(&app.store, node.id, &node.host, now)).await
        })
    });
    if let Ok(ended) = timeout(CHECK_TIMEOUT, under_way).await {
        writes.under_way = None;
        let ended = ended.map_err(|error| error.to_string());
        let ended = ended.and_then(|ended| ended.map_err(|error| error.to_string()));
        writes.last = Some(ended.map_err(|error| format!("the last write failed: {error}")));
    }
    if let Some(failing) = app.store.outcomes().failing() {
        return Err(failing);
    }
    let unknown = || Err(format!("no write was committed within {} s", CHECK_TIMEOUT.as_secs()));
    writes.last.clone().unwrap_or_else(unknown)
}

fn areas(app: &App) -> Result<(), String> {
    if !app.node.is_sure() {
        return Err("this node cannot read which versions are live".to_owned());
    }
    let load_failures = app.node.load_failures();
    if load_failures.is_empty() {
        return Ok(());
    }
    let named: Vec<_> = load_failures.iter().take(AREAS_NAMED).map(String::as_str).collect();
    let more = match load_failures.len().saturating_sub(AREAS_NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Err(format!("{} components cannot be loaded: {}{more}", load_failures.len(), named.join("; ")))
}

fn clock(app: &App) -> Result<(), String> {
    let ahead = app.clock.wall_clock_ahead_ms();
    let most = app.config.readiness.max_clock_difference_ms;
    if ahead.unsigned_abs() <= u64::from(most) {
        return Ok(());
    }
    let direction = if ahead > 0 { "ahead of" } else { "behind" };
    let ms = ahead.unsigned_abs();
    Err(format!("this machine's clock is {ms} ms {direction} the database's; synchronize both"))
}

fn line(result: Result<(), String>) -> String {
    // Keeps each result on one line, whatever the error text contains.
    result.err().map_or_else(|| OK.to_owned(), |wrong| wrong.replace(['\r', '\n'], " "))
}

/// Logs each readiness check whose result changed between two reports.
fn log_changes(before: Option<&HealthReport>, now: &HealthReport) {
    for (check, line) in &now.checks {
        let was_ok =
            before.is_none_or(|before| before.checks.get(check).is_none_or(|was| was == OK));
        match (was_ok, line == OK) {
            (true, false) => tracing::warn!(?check, problem = line, "a readiness check fails"),
            (false, true) => tracing::info!(?check, "a readiness check passes again"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_described_without_figures_until_its_total_is_known() {
        assert!(!moving_line(MoveProgress { copied: 0, total: 0 }).contains('0'));
        let line = moving_line(MoveProgress { copied: 3, total: 8 });
        assert!(line.starts_with("3 of 8 documents"), "{line}");
    }
}
