//! Every node does what the database's pointers say: PostgreSQL tells when
//! one moves, and a node that hears nothing looks regularly. One that cannot
//! bring a version to life keeps the old one, says so, and tries again.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;

use super::super::App;
use super::deploy::digest_of;
use super::{
    InstallError, announce, compiled, end_last_calls, follow_trials, load, load_kept, ready, trust,
    unloaded,
};
use crate::domain::deployment::{Deployment, Pointer, Stage};
use crate::domain::manifest::Manifest;
use crate::domain::trial::Trial;
use crate::registry::{AreaVersion, Change};
use crate::runtime::Loaded;
use crate::store::{self, Notices, deployments};

/// Between two signs of life.
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// A load that takes longer is not waited for with the area's routes unknown.
const QUICK: Duration = Duration::from_millis(250);
/// A node that was not seen for so long is forgotten.
const FORGET_MS: i64 = 10 * 60_000;

/// A version that can be planned.
pub(super) enum Candidate {
    /// It was kept ready.
    Warm(Arc<AreaVersion>),
    /// It was read from the blob store and compiled.
    Fresh(Box<Loaded>),
}

impl Candidate {
    /// What it says it is.
    pub(super) fn manifest(&self) -> &Manifest {
        match self {
            Self::Warm(version) => &version.manifest,
            Self::Fresh(loaded) => &loaded.manifest,
        }
    }
}

/// Follows the pointers for as long as it is polled.
pub async fn follow(app: App) {
    let poll = Duration::from_millis(u64::from(app.config.areas.poll_ms));
    let (mut ears, mut reported) = (None, None);
    loop {
        if ears.is_none() {
            ears = app.store.notices().await.ok();
        }
        if let Err(error) = look(&app, &mut reported).await {
            tracing::warn!(%error, "deployments cannot be read; the areas stay as they are");
        }
        tokio::select! {
            () = hear(&mut ears) => {}
            // An operator was at this node.
            () = app.node.news() => reported = None,
            () = tokio::time::sleep(poll) => {}
        }
    }
}

/// Waits for news from the database, for ever where none can come. A
/// connection that broke is given up.
async fn hear(ears: &mut Option<Notices>) {
    if let Some(notices) = ears {
        match notices.next().await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(%error, "no news of deployments; they are looked for regularly");
            }
        }
    }
    *ears = None;
    std::future::pending::<()>().await;
}

/// Catches up, and reports what has changed, or at least that this process is
/// alive.
async fn look(app: &App, reported: &mut Option<Instant>) -> Result<(), store::Error> {
    let changed = catch_up(app).await?;
    if changed || reported.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
        report(app).await?;
        *reported = Some(Instant::now());
    }
    Ok(())
}

/// Brings this process to where the pointers and the trials are. Answers
/// whether anything was done or failed.
///
/// # Errors
/// The database is away.
pub async fn catch_up(app: &App) -> Result<bool, store::Error> {
    let fence = &app.node.fence;
    // Who was out of reach for too long answers again when it has caught up;
    // who was not goes on answering while it does.
    let was_sure = fence.is_sure();
    let (asked_at, pointers) = ask(app).await?;
    let reaching = Box::pin(reach(app, pointers));
    let (trials, changed) = if was_sure {
        fence.learned(asked_at);
        staying_sure(app, reaching).await?
    } else {
        let reached = reaching.await?;
        fence.learned(asked_at);
        reached
    };
    let begun = staying_sure(app, Box::pin(follow_trials::begin(app, trials))).await;
    Ok(changed || begun)
}

/// Ends the trials that are over and does what the pointers say. Answers the
/// trials that run, and whether anything was done or failed.
async fn reach(app: &App, pointers: Vec<Pointer>) -> Result<(Vec<Trial>, bool), store::Error> {
    let (trials, ended) = follow_trials::end(app).await?;
    let live = app.registry.snapshot();
    app.node.forget_met(&live, &pointers);
    let behind: Vec<Pointer> =
        pointers.into_iter().filter(|pointer| app.node.is_behind(&live, pointer)).collect();
    obey_all(app, &behind).await;
    Ok((trials, ended || !behind.is_empty()))
}

/// What is live, and when that was asked. Keeps the clock by the database's.
async fn ask(app: &App) -> Result<(Instant, Vec<Pointer>), store::Error> {
    let asked_at = Instant::now();
    let asked = app.store.in_time(async {
        let mut connection = app.store.reader().await?;
        store::health::measure(&mut connection, &app.clock).await?;
        let pointers = deployments::pointers(&mut connection).await?;
        connection.release();
        Ok(pointers)
    });
    Ok((asked_at, asked.await?))
}

/// Goes on asking what is live while some work takes its time: a version may
/// load for longer than a node may go without having asked. What was learned
/// is acted on afterwards.
async fn staying_sure<T>(app: &App, work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        never = keep_asking(app) => match never {},
    }
}

async fn keep_asking(app: &App) -> Infallible {
    loop {
        tokio::time::sleep(Duration::from_millis(u64::from(app.config.areas.poll_ms))).await;
        match ask(app).await {
            Ok((asked_at, _)) => app.node.fence.learned(asked_at),
            Err(error) => tracing::debug!(%error, "deployments cannot be read"),
        }
    }
}

/// Compiled side by side, installed one by one.
async fn obey_all(app: &App, behind: &[Pointer]) {
    let mut loading = Box::pin(join_all(behind.iter().map(|pointer| wanted(app, pointer))));
    let candidates = match tokio::time::timeout(QUICK, &mut loading).await {
        Ok(candidates) => candidates,
        Err(_) => tokio::join!(unloaded::stand_in(app, behind), loading).1,
    };
    for (pointer, candidate) in behind.iter().zip(candidates) {
        let done = match candidate {
            Ok(candidate) => obey(app, pointer, candidate).await,
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            give_up(app, pointer, &error).await;
        }
    }
}

/// The version that runs stays, unless it was withdrawn: then its area has
/// nothing to answer with. Where none runs, its routes answer 503.
async fn give_up(app: &App, pointer: &Pointer, error: &InstallError) {
    let digest = pointer.digest.as_deref().unwrap_or_default();
    tracing::error!(area.name = pointer.area, area.digest = digest, %error, "not live here");
    app.node.failed(&pointer.area, digest, error.to_string());
    unloaded::stand_in(app, std::slice::from_ref(pointer)).await;
    match is_withdrawn(app, &pointer.area).await {
        Ok(withdrawn) => app.node.fence.set_withdrawn(&pointer.area, withdrawn),
        Err(error) => tracing::warn!(%error, "whether what runs was withdrawn is not known"),
    }
}

/// Whether the version that runs here was withdrawn.
async fn is_withdrawn(app: &App, area: &str) -> Result<bool, store::Error> {
    let live = app.registry.snapshot();
    let Some(running) = live.running(area) else { return Ok(false) };
    let found = version(app, area, &running.digest).await?;
    Ok(found.is_some_and(|version| version.stage == Stage::Withdrawn))
}

pub(super) async fn version(
    app: &App,
    area: &str,
    digest: &str,
) -> Result<Option<Deployment>, store::Error> {
    let asked = app.store.in_time(async {
        let mut connection = app.store.reader().await?;
        let found = deployments::find(&mut connection, area, digest).await?;
        connection.release();
        Ok(found)
    });
    asked.await
}

/// The version a pointer names; nothing, where the area is taken out.
async fn wanted(app: &App, pointer: &Pointer) -> Result<Option<Candidate>, InstallError> {
    let Some(digest) = &pointer.digest else { return Ok(None) };
    let found = version(app, &pointer.area, digest).await?;
    let unknown = || InstallError::NotKnown { area: pointer.area.clone(), digest: digest.clone() };
    Ok(Some(candidate(app, found.ok_or_else(unknown)?).await?))
}

/// A version ready to be planned: kept warm, or loaded from the blob store.
pub(super) async fn candidate(app: &App, version: Deployment) -> Result<Candidate, InstallError> {
    if let Some(warm) = app.node.warm(&version.area, &version.digest) {
        return Ok(Candidate::Warm(warm));
    }
    let signature = trust::kept(version.publisher.as_deref(), version.signature.as_deref());
    let vouched = trust::who_vouches(&app.config, &version.digest, signature.as_ref())?;
    vouched.covers(&version.area)?;
    compiled::fetch(app, &version.digest, version.size).await;
    let loaded = match load_kept(app, &version.digest).await? {
        Some(loaded) => loaded,
        None => from_component(app, version).await?,
    };
    Ok(Candidate::Fresh(Box::new(loaded)))
}

async fn from_component(app: &App, version: Deployment) -> Result<Loaded, InstallError> {
    let component = match app.store.blobs().read_component(&version.object).await {
        Err(store::Error::NotFound) => {
            let (area, object) = (version.area, version.object);
            return Err(InstallError::Missing { area, object });
        }
        component => component?,
    };
    // Before anything reads them: bytes that are not the version's are not
    // parsed.
    let found = digest_of(component.clone()).await?;
    if found != version.digest {
        let (area, digest) = (version.area, version.digest);
        return Err(InstallError::Damaged { area, digest, found });
    }
    load(app, Arc::from(&component[..])).await.map_err(Into::into)
}

/// Does what a pointer says, unless an operator at this node has meanwhile.
async fn obey(
    app: &App,
    pointer: &Pointer,
    candidate: Option<Candidate>,
) -> Result<(), InstallError> {
    let version = match candidate {
        Some(candidate) => Some(ready::to_answer(app, candidate).await?),
        None => None,
    };
    let _one_at_a_time = app.installing.lock().await;
    if !app.node.is_behind(&app.registry.snapshot(), pointer) || moved(app, pointer).await? {
        return Ok(());
    }
    let plan = match &version {
        None => app.registry.plan_removal(&pointer.area)?,
        Some(version) => app.registry.plan_again(version)?,
    };
    if let Some(change) = app.registry.activate(plan) {
        settle(app, &change);
    }
    Ok(())
}

/// Notes that an area is where its pointer is.
pub(super) fn settle(app: &App, change: &Change) {
    app.node.forget_file(&change.area);
    app.node.recovered(&change.area);
    for version in change.before.iter().chain(&change.now).filter(|version| version.is_loaded()) {
        app.node.keep_warm(version);
    }
    let replaced = |before: &&Arc<AreaVersion>| {
        change.now.as_ref().is_none_or(|now| now.digest != before.digest)
    };
    if let Some(before) = change.before.as_ref().filter(replaced) {
        end_last_calls(app, before);
    }
    announce(app, change);
}

/// Whether the pointer has moved since it was read; the next look sees it.
async fn moved(app: &App, pointer: &Pointer) -> Result<bool, store::Error> {
    let asked = app.store.in_time(async {
        let mut connection = app.store.reader().await?;
        let now = deployments::pointer_of(&mut connection, &pointer.area).await?;
        connection.release();
        Ok(now.is_none_or(|now| now.revision != pointer.revision))
    });
    asked.await
}

/// Says what this process runs.
async fn report(app: &App) -> Result<(), store::Error> {
    let now = app.clock.now();
    let reports = app.node.report(&app.registry.snapshot(), now);
    let (node, forget_before) = (&app.node, now.plus_ms(-FORGET_MS));
    let said = app.store.in_time(async {
        let mut tx = app.store.begin(store::Access::WriteLocked).await?;
        store::nodes::see(&mut tx, node.id(), node.host(), now).await?;
        store::nodes::report(&mut tx, node.id(), &reports, forget_before).await?;
        tx.commit().await
    });
    said.await
}

/// Says that this process runs nothing any more.
///
/// # Errors
/// The database is away; the others notice the silence.
pub async fn sign_off(app: &App) -> Result<(), store::Error> {
    let forget_before = app.clock.now().plus_ms(-FORGET_MS);
    let said = app.store.in_time(async {
        let mut tx = app.store.begin(store::Access::WriteLocked).await?;
        store::nodes::forget(&mut tx, app.node.id(), forget_before).await?;
        tx.commit().await
    });
    said.await
}
