//! Binds, serves and stops the two listeners, and writes the file with their addresses.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::http;
use crate::http::admin::{self, OperatorsState};
use crate::http::listen::{self, ShutdownTokens};
use assurance_core::config::{Config, files};
use assurance_service::app::App;

/// Both listeners. They are bound before anything else is opened, so that a used port is reported
/// at once.
pub(super) struct Listeners {
    api: TcpListener,
    pub(super) api_address: SocketAddr,
    operators: TcpListener,
    operators_address: SocketAddr,
}

impl Listeners {
    pub(super) fn operators_url(&self) -> String {
        format!("http://{}", self.operators_address)
    }

    pub(super) async fn bind(config: &Config) -> anyhow::Result<Self> {
        let (api, api_address) = bind("api.listen", config.api.listen).await?;
        let (operators, operators_address) =
            bind("operators.listen", config.operators.listen).await?;
        Ok(Self { api, api_address, operators, operators_address })
    }

    pub(super) fn serve(
        self,
        app: &App,
        operators: &OperatorsState,
        stop: &CancellationToken,
    ) -> RunningListeners {
        let limits = &app.config.limits;
        let settings = listen::ListenerSettings {
            name: "api",
            max_connections: app.config.api.max_connections,
            max_per_address: app.config.api.max_connections_per_address,
            trusted_proxies: app.config.api.trusted_proxies.as_slice().into(),
            header_timeout: Duration::from_millis(u64::from(limits.header_timeout_ms)),
            stall_timeout: Duration::from_millis(u64::from(limits.body_timeout_ms)),
            min_download_rate: limits.min_download_rate,
            idle_timeout: Duration::from_millis(u64::from(limits.idle_timeout_ms)),
            max_header_bytes: limits.max_header_bytes,
            drain: drain_time(&app.config),
        };
        let closing = CancellationToken::new();
        let stopping = ShutdownTokens { closing: closing.clone(), closed: stop.clone() };
        let api = listen::serve(self.api, http::api(app), settings.clone(), stopping);
        let settings = listen::ListenerSettings { name: "operators", ..settings };
        // The operators' listener runs until the last request and job have ended.
        let last = CancellationToken::new();
        let stopping = ShutdownTokens { closing: last.clone(), closed: last.clone() };
        let admin = listen::serve(self.operators, admin::operators(operators), settings, stopping);
        RunningListeners { api: tokio::spawn(api), admin: tokio::spawn(admin), closing, last }
    }
}

/// Both listeners while they serve.
pub(super) struct RunningListeners {
    api: JoinHandle<()>,
    admin: JoinHandle<()>,
    /// Makes responses of the API end their connections.
    pub(super) closing: CancellationToken,
    last: CancellationToken,
}

impl RunningListeners {
    /// Waits for the requests in flight and for the jobs.
    pub(super) async fn finish(self, jobs: impl Future<Output = ()>) {
        let _ = tokio::join!(self.api, jobs);
        self.last.cancel();
        let _ = self.admin.await;
    }
}

async fn bind(key: &str, address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("configuration key {key}: cannot listen on {address}"))?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

fn drain_time(config: &Config) -> Duration {
    Duration::from_secs(u64::from(config.api.drain_seconds))
}

/// The file `serving.json` in the data folder: the addresses of this process, for tests and the
/// command line. Dropping it deletes the file.
pub(super) struct ServingNote {
    path: PathBuf,
}

impl ServingNote {
    pub(super) fn write(data_dir: &Path, listeners: &Listeners) -> anyhow::Result<Self> {
        let path = data_dir.join("serving.json");
        let note = json!({
            "api": format!("http://{}", listeners.api_address),
            "operators": listeners.operators_url(),
            "pid": std::process::id(),
        });
        files::replace_private(&path, note.to_string().as_bytes(), false)?;
        Ok(Self { path })
    }
}

impl Drop for ServingNote {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
