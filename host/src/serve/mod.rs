//! Wires the service: configuration, stores, runtime, workers, router, drain.
//!
//! Everything is opened and checked before a listener is bound, and closed in
//! the opposite order.

mod reload;

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::app::folder::Folder;
use crate::app::{App, InFlight, Limiter, Parts};
use crate::app::{answer, areas, health, share_rates};
use crate::config::{AreaLimits, Config};
use crate::egress::{self, Egress};
use crate::http::admin::{self, Operators, Readiness};
use crate::http::{self, listen};
use crate::jobs::{self, Runnable, Workers};
use crate::mail::{self, Mail};
use crate::open;
use crate::recordings::Recordings;
use crate::registry::{Ceilings, Registry};
use crate::runtime::{Loaded, Runtime};
use crate::store::Backend;
use crate::telemetry::Metrics;
use crate::work::{Limits, LimitsByArea};

/// How often idle state is forgotten and samples are folded.
const UPKEEP: Duration = Duration::from_secs(10);

/// Reads the configuration again.
pub type Reload = Box<dyn Fn() -> anyhow::Result<Config> + Send>;

/// What a caller adds to serving.
pub struct Hooks {
    /// See [`Parts::code_of`].
    pub code_of: fn(Loaded) -> Loaded,
    /// Reads the configuration again, at SIGHUP.
    pub reload: Option<Reload>,
    /// Told the address of the API once it is served.
    pub on_serving: Box<dyn FnOnce(String) + Send>,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}

impl Default for Hooks {
    fn default() -> Self {
        Self { code_of: |loaded| loaded, reload: None, on_serving: Box::new(|_| {}) }
    }
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// Where something cannot be opened or bound.
pub async fn run(config: Config, hooks: Hooks) -> anyhow::Result<()> {
    let mut told = StopSignals::install()?;
    let metrics = Metrics::install()?;
    let token = open::operators_token(&config.operators_token_file())?;
    let listeners = Listeners::bind(&config).await?;
    let app = assemble(config, &listeners, hooks.code_of).await?;
    let stop = CancellationToken::new();
    let watching = load_areas(&app, &stop).await?;
    let workers = start_workers(&app).await?;

    let readiness = Readiness::default();
    let operators = Operators::new(app.clone(), metrics.clone(), readiness.clone(), &token);
    let upkeep = tokio::spawn(keep_up(app.clone(), metrics, stop.clone()));
    let following = tokio::spawn(follow(app.clone(), stop.clone()));
    let reloading = reload::start(&app, hooks.reload, &stop)?;
    let note = ServingNote::write(&app.config.data_dir, &listeners)?;
    let api_address = listeners.api_address;
    let serving = listeners.serve(&app, &operators, &stop);
    readiness.set(true);
    (hooks.on_serving)(format!("http://{api_address}"));
    tracing::info!(api = app.base_url, operators = note.operators, "serving");

    told.until_stopped().await;
    tracing::info!("stopping: no new connections, requests in flight end");
    readiness.set(false);
    drop(note);
    stop.cancel();
    serving.finish().await;
    if let Some(workers) = workers {
        workers.drain(drain_time(&app.config)).await;
    }
    for task in watching.into_iter().chain(reloading).chain([upkeep, following]) {
        let _ = task.await;
    }
    app.store.close().await;
    tracing::info!("stopped");
    Ok(())
}

async fn assemble(
    config: Config,
    listeners: &Listeners,
    code_of: fn(Loaded) -> Loaded,
) -> anyhow::Result<App> {
    let open::Opened { store, keys, identity, clock } = open::open(&config).await?;
    store.blobs().check().await?;
    let egress = Egress::new(egress::Settings::from(&config.egress))?;
    let mail = Mail::new(mail::Settings::from(&config))?;
    let runtime = Runtime::new((&config).into(), &keys, clock.clone(), egress, mail)?;
    let registry = Arc::new(Registry::new(
        http::host_operations(),
        Ceilings::from(&config),
        call_limits(&config),
    ));
    let base_url = match &config.api.base_url {
        Some(_) => config.base_url(),
        None => format!("http://{}", listeners.api_address),
    };
    let shared = store.backend() == Backend::Postgres;
    Ok(App::new(Parts {
        base_url,
        clock,
        store,
        keys,
        runtime,
        code_of,
        registry,
        identity,
        limiter: Limiter::new(&config.rates, shared),
        in_flight: InFlight::default(),
        node: areas::Node::new(&config.areas),
        health: health::Health::default(),
        recordings: Recordings::open(config.areas.record.clone(), config.recordings_dir())?,
        installing: tokio::sync::Mutex::default(),
        config,
    }))
}

fn call_limits(config: &Config) -> LimitsByArea {
    let default = Limits {
        max_documents: config.limits.max_documents,
        max_bytes: config.limits.max_document_bytes,
        max_jobs: config.limits.max_jobs,
        max_events: config.limits.max_events,
        max_payload_bytes: config.limits.max_payload_bytes,
        max_outgoing_bytes: config.limits.max_outgoing_bytes,
        max_incoming_bytes: config.limits.max_incoming_bytes,
        max_blob_bytes: config.limits.max_blob_bytes,
    };
    let own = |limits: &AreaLimits| Limits {
        max_documents: limits.max_documents.unwrap_or(default.max_documents),
        max_bytes: limits.max_document_bytes.unwrap_or(default.max_bytes),
        ..default
    };
    let areas = &config.areas.limits;
    let areas = areas.iter().map(|(area, limits)| (area.clone(), own(limits))).collect();
    LimitsByArea { default, areas }
}

/// Loads the folder of areas, and follows it where the operator wants that;
/// then what operators have deployed.
async fn load_areas(
    app: &App,
    stop: &CancellationToken,
) -> anyhow::Result<Option<tokio::task::JoinHandle<()>>> {
    let path = &app.config.areas_dir();
    let at = || format!("the folder of areas, {}", path.display());
    std::fs::create_dir_all(path).with_context(at)?;
    let folder = Folder::load(app.clone(), path.clone()).await.with_context(at)?;
    areas::catch_up(app).await.context("the deployed areas")?;
    let watching = app.config.areas.watch.then(|| {
        let watching = stop.clone().run_until_cancelled_owned(folder.watch());
        tokio::spawn(async { Box::pin(watching).await.unwrap_or_default() })
    });
    Ok(watching)
}

/// Does what operators decide at any node, judges canaries and shares rates,
/// until the service stops.
async fn follow(app: App, stop: CancellationToken) {
    let following = async {
        tokio::join!(
            areas::follow(app.clone()),
            areas::judge(app.clone()),
            share_rates(app.clone())
        );
    };
    stop.run_until_cancelled(Box::pin(following)).await.unwrap_or_default();
    if let Err(error) = areas::sign_off(&app).await {
        tracing::warn!(%error, "this node could not sign off");
    }
}

async fn start_workers(app: &App) -> anyhow::Result<Option<Workers>> {
    if !app.config.jobs.enabled {
        return Ok(None);
    }
    let (names, find) = (app.clone(), app.clone());
    let areas = jobs::Areas {
        names: Arc::new(move || {
            let snapshot = names.registry.snapshot();
            let running = snapshot.areas().filter(|area| names.node.admit(area).is_ok());
            running.map(|area| area.manifest.name.clone()).collect()
        }),
        find: Arc::new(move |name, workspace| {
            let snapshot = find.registry.snapshot();
            find.node.admit(snapshot.area(name)?).ok()?;
            let (version, counted) = answer::runs_jobs(&snapshot, name, workspace)?;
            Some(Runnable {
                code: Arc::clone(&version.code),
                scope: Arc::clone(&version.scope),
                witness: counted.map(|counted| Arc::new(move |failed| counted.ran(failed)) as _),
            })
        }),
    };
    let deps = jobs::Deps {
        store: app.store.clone(),
        keys: Arc::clone(&app.keys),
        clock: app.clock.clone(),
        areas,
        settings: app.config.jobs.clone(),
        recordings: app.recordings.clone(),
    };
    Ok(Some(jobs::start(deps).await?))
}

/// Both listeners, bound before anything else is opened, so that a taken port
/// is told at once.
struct Listeners {
    api: TcpListener,
    api_address: SocketAddr,
    operators: TcpListener,
    operators_address: SocketAddr,
}

impl Listeners {
    async fn bind(config: &Config) -> anyhow::Result<Self> {
        let (api, api_address) = bind("api.listen", config.api.listen).await?;
        let (operators, operators_address) =
            bind("operators.listen", config.operators.listen).await?;
        Ok(Self { api, api_address, operators, operators_address })
    }

    fn serve(self, app: &App, operators: &Operators, stop: &CancellationToken) -> Serving {
        let limits = &app.config.limits;
        let settings = listen::Settings {
            name: "api",
            max_connections: app.config.api.max_connections,
            max_per_address: app.config.api.max_connections_per_address,
            trusted_proxies: app.config.api.trusted_proxies.as_slice().into(),
            header_timeout: Duration::from_millis(u64::from(limits.header_timeout_ms)),
            stall_timeout: Duration::from_millis(u64::from(limits.body_timeout_ms)),
            max_header_bytes: limits.max_header_bytes,
            drain: drain_time(&app.config),
        };
        let api = listen::serve(self.api, http::api(app), settings.clone(), stop.clone());
        let settings = listen::Settings { name: "operators", ..settings };
        // Operators see the service until the last request has ended.
        let last = CancellationToken::new();
        let admin =
            listen::serve(self.operators, admin::operators(operators), settings, last.clone());
        Serving { api: tokio::spawn(api), admin: tokio::spawn(admin), last }
    }
}

struct Serving {
    api: tokio::task::JoinHandle<()>,
    admin: tokio::task::JoinHandle<()>,
    last: CancellationToken,
}

impl Serving {
    async fn finish(self) {
        let _ = self.api.await;
        self.last.cancel();
        let _ = self.admin.await;
    }
}

async fn bind(key: &str, address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("configuration key {key}: {address} cannot be listened on"))?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

fn drain_time(config: &Config) -> Duration {
    Duration::from_secs(u64::from(config.api.drain_seconds))
}

/// `serving.json` of the data folder: where this process answers, for tests
/// and the command line. Gone when dropped.
struct ServingNote {
    path: PathBuf,
    operators: String,
}

impl ServingNote {
    fn write(data_dir: &Path, listeners: &Listeners) -> anyhow::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt;

        let path = data_dir.join("serving.json");
        let beside = data_dir.join(format!("serving.{}.new", std::process::id()));
        let operators = format!("http://{}", listeners.operators_address);
        let note = json!({
            "api": format!("http://{}", listeners.api_address),
            "operators": operators,
            "pid": std::process::id(),
        });
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(note.to_string().as_bytes())?;
        std::fs::rename(&beside, &path)?;
        Ok(Self { path, operators })
    }
}

impl Drop for ServingNote {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn keep_up(app: App, metrics: Metrics, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(UPKEEP);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        metrics.upkeep();
        app.limiter.forget_idle();
        app.runtime.budgets().forget_idle();
    }
}

/// SIGTERM and SIGINT, noticed from the moment this exists.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn install() -> std::io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn until_stopped(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
