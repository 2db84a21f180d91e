//! Binds, serves and stops the two listeners, and writes the file with their addresses.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::http;
use crate::http::admin::{self, OperatorsState, StartedRouter};
use crate::http::listen::{self, ListenerLimits, ShutdownTokens};
use assurance_core::config::{Config, files};
use assurance_service::app::App;

/// The bound listeners of the API and of the operators' API. They are bound before anything else is
/// opened, so that a used port is reported at once. The API's connections wait until it is served.
pub(super) struct Listeners {
    api: TcpListener,
    pub(super) api_address: SocketAddr,
    operators: RunningOperatorsListener,
    operators_address: SocketAddr,
}

/// The operators' listener. It responds while the service starts, and runs until the last request
/// and job have ended.
struct RunningOperatorsListener {
    task: AbortOnDropHandle<()>,
    started: StartedRouter,
    stop: CancellationToken,
}

impl RunningOperatorsListener {
    fn serve(listener: TcpListener, config: &Config) -> Self {
        let (started, stop) = (StartedRouter::default(), CancellationToken::new());
        let router = admin::until_started(Arc::clone(&started));
        let stopping = ShutdownTokens { closing: stop.clone(), closed: stop.clone() };
        let task = listen::serve(listener, router, limits("operators", config), stopping);
        Self { task: AbortOnDropHandle::new(tokio::spawn(task)), started, stop }
    }
}

impl Listeners {
    pub(super) fn operators_url(&self) -> String {
        format!("http://{}", self.operators_address)
    }

    /// Returns the URLs of both listeners and the id of this process, for `serving.json`.
    pub(super) fn addresses(&self) -> Value {
        json!({
            "api": format!("http://{}", self.api_address),
            "operators": self.operators_url(),
            "pid": std::process::id(),
        })
    }

    pub(super) async fn bind(config: &Config) -> anyhow::Result<Self> {
        let (api, api_address) = bind("api.listen", config.api.listen).await?;
        let (operators, operators_address) =
            bind("operators.listen", config.operators.listen).await?;
        let operators = RunningOperatorsListener::serve(operators, config);
        Ok(Self { api, api_address, operators, operators_address })
    }

    pub(super) fn serve(
        self,
        app: &App,
        operators: &OperatorsState,
        stop: &CancellationToken,
    ) -> RunningListeners {
        let closing = CancellationToken::new();
        let stopping = ShutdownTokens { closing: closing.clone(), closed: stop.clone() };
        let api = listen::serve(self.api, http::api(app), limits("api", &app.config), stopping);
        // It is set only here, so it was not set before.
        let _ = self.operators.started.set(admin::operators(operators));
        RunningListeners { api: tokio::spawn(api), operators: self.operators, closing }
    }
}

/// The listeners of the API and of the operators' API while they serve.
pub(super) struct RunningListeners {
    api: JoinHandle<()>,
    operators: RunningOperatorsListener,
    /// Cancelled to make each response of the API end its connection.
    pub(super) closing: CancellationToken,
}

impl RunningListeners {
    /// Waits for the API's requests in flight and for `jobs`, then stops the operators' listener.
    pub(super) async fn finish(self, jobs: impl Future<Output = ()>) {
        let _ = tokio::join!(self.api, jobs);
        self.operators.stop.cancel();
        let _ = self.operators.task.await;
    }
}

async fn bind(key: &str, address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("configuration key {key}: cannot listen on {address}"))?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

fn limits(name: &'static str, config: &Config) -> ListenerLimits {
    let limits = &config.limits;
    ListenerLimits {
        name,
        max_connections: config.api.max_connections,
        max_per_address: config.api.max_connections_per_address,
        trusted_proxies: config.api.trusted_proxies.as_slice().into(),
        header_timeout: Duration::from_millis(u64::from(limits.header_timeout_ms)),
        stall_timeout: Duration::from_millis(u64::from(limits.body_timeout_ms)),
        min_download_rate: limits.min_download_rate,
        idle_timeout: Duration::from_millis(u64::from(limits.idle_timeout_ms)),
        max_header_bytes: limits.max_header_bytes,
        drain: Duration::from_secs(u64::from(config.api.drain_seconds)),
    }
}

/// The file `serving.json` in the data folder: the addresses of this process, for tests and the
/// command line. Dropping it deletes the file.
pub(super) struct ServingAddressesFile {
    path: PathBuf,
}

impl ServingAddressesFile {
    pub(super) fn write(data_dir: &Path, addresses: &Value) -> anyhow::Result<Self> {
        let path = data_dir.join("serving.json");
        files::replace_private(&path, addresses.to_string().as_bytes(), false)?;
        Ok(Self { path })
    }
}

impl Drop for ServingAddressesFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
