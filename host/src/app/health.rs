//! Whether this node can do its work. Asked by load balancers as often as
//! they like: the checks run at most once a second, for all who ask.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::App;
use crate::domain::health::{Check, HealthReport, OK};
use crate::store::{self, health, installation};

/// For how long a result is good.
const FRESH: Duration = Duration::from_secs(1);
/// How long a check may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// Areas that a line names; more are counted.
const AREAS_NAMED: usize = 5;

/// The last results, and the write that is under way.
#[derive(Debug, Default)]
pub struct Health {
    /// Held while the checks run, so that all who ask wait for one run.
    last: Mutex<Option<(Instant, Arc<HealthReport>)>>,
    writes: Mutex<Writes>,
}

/// A write may wait for its turn longer than a check may take; it is not given
/// up then, and the check tells how the write before it ended.
#[derive(Debug, Default)]
struct Writes {
    under_way: Option<JoinHandle<Result<(), store::Error>>>,
    last: Option<Result<(), String>>,
}

/// Runs all checks, or returns the results of less than a second ago.
pub async fn check(app: &App) -> Arc<HealthReport> {
    let mut last = app.health.last.lock().await;
    if let Some((at, report)) = &*last
        && at.elapsed() < FRESH
    {
        return Arc::clone(report);
    }
    let report = Arc::new(run(app).await);
    let before = last.as_ref().map(|(_, before)| before.as_ref());
    announce(before, &report);
    *last = Some((Instant::now(), Arc::clone(&report)));
    report
}

async fn run(app: &App) -> HealthReport {
    let (database, writes, blobs) = tokio::join!(ask_database(app), write(app), ask_blobs(app));
    let mut checks = BTreeMap::from([
        (Check::Serving, OK.to_owned()),
        (Check::Writes, line(writes)),
        (Check::Areas, line(areas(app))),
        (Check::Clock, line(clock(app))),
        (Check::Blobs, line(blobs)),
    ]);
    match database {
        Ok(database) => {
            checks.insert(Check::Database, OK.to_owned());
            checks.insert(Check::MasterKey, line(database.master_key));
            checks.insert(Check::Schema, line(database.schema));
        }
        Err(away) => {
            checks.insert(Check::Database, away);
            for check in [Check::MasterKey, Check::Schema] {
                checks.insert(check, "not checked: the database does not answer".to_owned());
            }
        }
    }
    HealthReport::new(checks, &app.config.readiness.degraded_by)
}

/// What the database says of itself.
struct Database {
    master_key: Result<(), String>,
    schema: Result<(), String>,
}

async fn ask_database(app: &App) -> Result<Database, String> {
    let asked = async {
        let mut connection = app.store.reader().await?;
        health::measure(&mut connection, &app.clock).await?;
        let key = installation::key_check(&mut connection).await?;
        let newer = health::newer_migration(&mut connection).await?;
        connection.release();
        Ok::<_, store::Error>((key, newer))
    };
    let (key, newer) = in_time(asked, "the database").await?;
    let is_ours = key.as_deref() == Some(&app.keys.check_value()[..]);
    Ok(Database {
        master_key: is_ours.then_some(()).ok_or_else(|| {
            "the database is used with another master key; give this node that key and restart it"
                .to_owned()
        }),
        schema: newer.map_or(Ok(()), |version| {
            Err(format!(
                "a newer release has applied migration {version}; upgrade this node to that release"
            ))
        }),
    })
}

async fn ask_blobs(app: &App) -> Result<(), String> {
    in_time(app.store.blobs().ping(), "the blob store").await
}

async fn in_time<T, E: Display>(
    asked: impl Future<Output = Result<T, E>>,
    whom: &str,
) -> Result<T, String> {
    match timeout(PATIENCE, asked).await {
        Ok(answered) => answered.map_err(|error| error.to_string()),
        Err(_) => Err(format!("{whom} did not answer within {} s", PATIENCE.as_secs())),
    }
}

/// Commits a small write, or reports how the last one ended while the next
/// waits for its turn. If calls' writes fail, that one says nothing.
async fn write(app: &App) -> Result<(), String> {
    let mut writes = app.health.writes.lock().await;
    let under_way = writes.under_way.get_or_insert_with(|| {
        let app = app.clone();
        tokio::spawn(async move {
            let (node, now) = (&app.node, app.clock.now());
            app.store.in_time(health::check_write(&app.store, node.id(), node.host(), now)).await
        })
    });
    if let Ok(ended) = timeout(PATIENCE, under_way).await {
        writes.under_way = None;
        let ended = ended.map_err(|error| error.to_string());
        let ended = ended.and_then(|ended| ended.map_err(|error| error.to_string()));
        writes.last = Some(ended.map_err(|error| format!("the last write failed: {error}")));
    }
    if let Some(failing) = app.store.outcomes().failing() {
        return Err(failing);
    }
    let unknown = || Err(format!("no write was committed within {} s", PATIENCE.as_secs()));
    writes.last.clone().unwrap_or_else(unknown)
}

fn areas(app: &App) -> Result<(), String> {
    if !app.node.is_sure() {
        return Err("this node cannot read which versions are live".to_owned());
    }
    let unmet = app.node.unmet();
    if unmet.is_empty() {
        return Ok(());
    }
    let named: Vec<_> = unmet.iter().take(AREAS_NAMED).map(String::as_str).collect();
    let more = match unmet.len().saturating_sub(AREAS_NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Err(format!("{} live versions cannot be loaded: {}{more}", unmet.len(), named.join("; ")))
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
    // One line each, whatever a server's message looks like.
    result.err().map_or_else(|| OK.to_owned(), |wrong| wrong.replace(['\r', '\n'], " "))
}

/// Logs each check whose result is another than the last time.
fn announce(before: Option<&HealthReport>, now: &HealthReport) {
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
