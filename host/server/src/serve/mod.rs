//! Starts and stops the service: configuration, stores, runtime, workers and router.
//!
//! Both listeners are bound first. Until everything is opened and checked, only health is served.
//! What was opened is closed in the opposite order.

mod listeners;
mod lock;
mod open_files;
mod reload;
mod series;
mod stop;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::http;
use crate::http::admin::{OperatorsState, ReadinessSwitch};
use crate::telemetry::Metrics;
use assurance_contract::ContractLimits;
use assurance_core::config::{AreaCallLimits, Config};
use assurance_core::recordings::Recordings;
use assurance_outside::egress::Egress;
use assurance_outside::mail::Mailer;
use assurance_runtime::{self as runtime, Runtime};
use assurance_service::app::folder::ComponentFolder;
use assurance_service::app::{App, AppParts, KeysInFlight, Limiter};
use assurance_service::app::{answer, areas, health, share_rates};
use assurance_service::jobs::{self, Workers};
use assurance_service::open;
use assurance_service::registry::Registry;
use assurance_store::{Backend, Quota};
use assurance_work::{LimitsByArea, UnitOfWorkLimits};

use self::listeners::{Listeners, RunningListeners, ServingAddressesFile};
use self::stop::StopSignals;

pub use self::lock::DatabaseLock;

/// Interval at which idle state is deleted, metric samples are aggregated and series of new areas
/// are created.
const UPKEEP: Duration = Duration::from_secs(10);

/// Function that reads the configuration again, for a reload.
pub type ConfigReloadFn = Box<dyn Fn() -> anyhow::Result<Config> + Send>;

/// Function that is called once the API is served, with the app and the URL of the API.
pub type OnServing = Box<dyn FnOnce(&App, String) + Send>;

/// Functions that [`run`] calls: at SIGHUP, and once the API is served.
pub struct ReloadAndServingHooks {
    /// Reads the configuration again at SIGHUP; `None` ignores the signal.
    pub reload: Option<ConfigReloadFn>,
    /// Called once the API is served.
    pub on_serving: OnServing,
}

impl Default for ReloadAndServingHooks {
    fn default() -> Self {
        Self { reload: None, on_serving: Box::new(|_, _| {}) }
    }
}

/// Serves until SIGTERM or SIGINT. A second signal ends the process without waiting for requests
/// and jobs.
///
/// # Errors
/// A resource cannot be opened, or an address cannot be bound.
pub async fn run(config: Config, hooks: ReloadAndServingHooks) -> anyhow::Result<()> {
    let mut signals = StopSignals::install()?;
    // Received from here on: by default, SIGHUP ends a process that is still starting.
    let hangups = signal(SignalKind::hangup())?;
    let service = tokio::select! {
        started = Box::pin(RunningService::start(config, hooks, hangups)) => started?,
        _ = signals.next() => {
            tracing::info!("stopped before the service was ready");
            return Ok(());
        }
    };
    signals.next().await;
    tokio::select! {
        () = Box::pin(service.stop()) => Ok(()),
        signal = signals.next() => stop::at_once(signal),
    }
}

/// Parts of the running service.
struct RunningService {
    app: App,
    readiness: ReadinessSwitch,
    note: ServingAddressesFile,
    serving: RunningListeners,
    workers: Option<Workers>,
    /// Background tasks; they end once `stop` is cancelled.
    tasks: Vec<JoinHandle<()>>,
    stop: CancellationToken,
    /// Held until the database is closed.
    _lock: Option<DatabaseLock>,
}

impl RunningService {
    async fn start(
        config: Config,
        hooks: ReloadAndServingHooks,
        hangups: Signal,
    ) -> anyhow::Result<Self> {
        open_files::raise_limit(&config);
        let lock = DatabaseLock::take(&config)?;
        let metrics = Metrics::install()?;
        let token = open::operators_token(&config.operators_token_file())?;
        let listeners = Listeners::bind(&config).await?;
        let app = assemble(config, &listeners).await?;
        let stop = CancellationToken::new();
        let watching = load_areas(&app, &stop).await?;
        let workers = start_workers(&app).await?;

        let readiness = ReadinessSwitch::default();
        let operators =
            OperatorsState::new(app.clone(), metrics.clone(), readiness.clone(), &token);
        let mut tasks = vec![
            tokio::spawn(keep_up(app.clone(), metrics, stop.clone())),
            tokio::spawn(follow(app.clone(), stop.clone())),
        ];
        tasks.extend(watching);
        tasks.extend(reload::start(&app, hooks.reload, hangups, &stop));
        let api_address = listeners.api_address;
        // Logged first: whoever finds the service ready finds its addresses in the log.
        tracing::info!(
            listen = %api_address,
            base_url = app.base_url,
            operators = listeners.operators_url(),
            "serving"
        );
        let addresses = listeners.addresses();
        let serving = listeners.serve(&app, &operators, &stop);
        let note = ServingAddressesFile::write(&app.config.data_dir, &addresses)?;
        readiness.set(true);
        (hooks.on_serving)(&app, format!("http://{api_address}"));
        Ok(Self { app, readiness, note, serving, workers, tasks, stop, _lock: lock })
    }

    /// Stops the service: reports unready, stops accepting connections, then waits for requests and
    /// jobs.
    async fn stop(self) {
        let Self { app, readiness, note, serving, workers, tasks, stop, _lock } = self;
        let delay = Duration::from_millis(u64::from(app.config.api.shutdown_delay_ms));
        tracing::info!(
            delay_ms = app.config.api.shutdown_delay_ms,
            "stopping: readiness switched off"
        );
        serving.closing.cancel();
        readiness.set(false);
        drop(note);
        tokio::time::sleep(delay).await;
        tracing::info!("stopping: no new connections; waiting for requests in flight");
        stop.cancel();
        let grace = Duration::from_secs(u64::from(app.config.jobs.drain_seconds));
        serving.finish(drain(workers, grace)).await;
        for task in tasks {
            let _ = task.await;
        }
        app.store.close().await;
        tracing::info!("stopped");
    }
}

async fn drain(workers: Option<Workers>, grace: Duration) {
    if let Some(workers) = workers {
        workers.drain(grace).await;
    }
}

async fn assemble(config: Config, listeners: &Listeners) -> anyhow::Result<App> {
    let open::OpenedResources { store, keys, identity, clock } =
        open::open_and_migrate(&config).await?;
    store.blobs().check().await?;
    let egress = Egress::new(config.egress.clone())?;
    let mail = Mailer::new(&config)?;
    let settings = runtime::Settings { compiler: runtime::this_program(), ..(&config).into() };
    let runtime = Runtime::new(settings, &keys, clock.clone(), egress, mail)?;
    let registry = Arc::new(Registry::new(
        http::documented_operations(clock.now(), config.access_tokens.max_days),
        ContractLimits::from(&config),
        call_limits(&config),
    ));
    let base_url = config.base_url_at(listeners.api_address);
    let fleet = store.backend() == Backend::Postgres;
    Ok(App::new(AppParts {
        base_url,
        clock,
        store,
        keys,
        runtime,
        registry,
        identity,
        limiter: Limiter::new(&config.rates, fleet)?,
        in_flight: KeysInFlight::default(),
        node: areas::LocalNode::new(&config.areas),
        health: health::HealthCheckState::default(),
        recordings: Recordings::open(config.areas.record.clone(), config.recordings_dir())?,
        installing: tokio::sync::Mutex::default(),
        config,
    }))
}

fn call_limits(config: &Config) -> LimitsByArea {
    let default = UnitOfWorkLimits {
        max_documents: config.limits.max_documents,
        max_bytes: config.limits.max_document_bytes,
        max_jobs: config.limits.max_jobs,
        max_waiting_jobs: config.jobs.max_waiting_per_area.into(),
        quota: Quota {
            area: config.limits.max_stored_bytes_per_area,
            workspace: config.limits.max_stored_bytes_per_workspace,
        },
        max_events: config.limits.max_events,
        max_payload_bytes: config.limits.max_payload_bytes,
        max_outgoing_bytes: config.limits.max_outgoing_bytes,
        max_incoming_bytes: config.limits.max_incoming_bytes,
        max_blob_bytes: config.limits.max_blob_bytes,
    };
    let own = |limits: &AreaCallLimits| UnitOfWorkLimits {
        max_documents: limits.max_documents.unwrap_or(default.max_documents),
        max_bytes: limits.max_document_bytes.unwrap_or(default.max_bytes),
        ..default
    };
    let areas = &config.areas.limits;
    let areas = areas.iter().map(|(area, limits)| (area.clone(), own(limits))).collect();
    LimitsByArea { default, areas }
}

/// Loads the areas of the folder and watches it if configured. Then loads the areas that operators
/// deployed.
async fn load_areas(app: &App, stop: &CancellationToken) -> anyhow::Result<Option<JoinHandle<()>>> {
    let path = &app.config.areas_dir();
    let at = || format!("the folder of areas, {}", path.display());
    match &app.config.areas.dir {
        // An empty folder instead of a misspelled one would serve no area.
        Some(dir) => ensure!(dir.is_dir(), "areas.dir: there is no folder {}", dir.display()),
        None => std::fs::create_dir_all(path).with_context(at)?,
    }
    let folder = ComponentFolder::load(app.clone(), path.clone()).await.with_context(at)?;
    areas::join(app).await.context("the deployed areas")?;
    let watching = app.config.areas.watch.then(|| {
        let watching = stop.clone().run_until_cancelled_owned(folder.watch());
        tokio::spawn(async { Box::pin(watching).await.unwrap_or_default() })
    });
    Ok(watching)
}

/// Runs background tasks until the service stops: follows operators' decisions of all nodes,
/// evaluates canaries, shares rate limits and moves documents of an older release.
async fn follow(app: App, stop: CancellationToken) {
    let following = async {
        tokio::join!(
            areas::follow(app.clone()),
            areas::watch_canaries(app.clone()),
            share_rates(app.clone()),
            app.store.move_documents()
        );
    };
    stop.run_until_cancelled(Box::pin(following)).await.unwrap_or_default();
    if let Err(error) = areas::sign_off(&app).await {
        tracing::warn!(%error, "cannot remove this node from the list of nodes");
    }
}

async fn start_workers(app: &App) -> anyhow::Result<Option<Workers>> {
    if !app.config.jobs.enabled {
        return Ok(None);
    }
    let (names, find) = (app.clone(), app.clone());
    let areas = jobs::AreaLookupFns {
        names: Arc::new(move || {
            let snapshot = names.registry.snapshot();
            let running = snapshot.areas().filter(|area| names.node.admit(area).is_ok());
            running.map(|area| area.manifest.name.clone()).collect()
        }),
        find: Arc::new(move |name, workspace| {
            let snapshot = find.registry.snapshot();
            find.node.admit(snapshot.area(name)?).ok()?;
            answer::runs_jobs(&snapshot, name, workspace)
        }),
    };
    let deps = jobs::WorkerDeps {
        store: app.store.clone(),
        keys: Arc::clone(&app.keys),
        clock: app.clock.clone(),
        areas,
        settings: app.config.jobs.clone(),
        recordings: app.recordings.clone(),
    };
    Ok(Some(jobs::start(deps).await?))
}

async fn keep_up(app: App, metrics: Metrics, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(UPKEEP);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        metrics.upkeep();
        series::create(&app);
        app.limiter.forget_idle();
        app.runtime.budgets().forget_idle();
    }
}
