//! The service with natively compiled areas, as a reference for the benchmark: same middleware,
//! store and area code, but no WebAssembly.
//!
//! It uses the configuration of `assurance serve`. Manifests are those of the components, so
//! routes, schemas and indexes are equal; only the execution of handlers differs.

mod answers;
mod convert;
mod twin;

use std::path::PathBuf;
use std::sync::Arc;

use assurance::serve::ReloadAndServingHooks;
use assurance::telemetry;
use assurance_core::config::{Config, ConfigSources};
use assurance_core::domain::manifest::Manifest;
use assurance_runtime::LoadedArea;
use assurance_service::app::App;
use assurance_service::registry::AreaTargetState;
use clap::Parser;

use crate::twin::{Make, NativeArea};

#[derive(Parser)]
#[command(about = "Serve with natively compiled areas, for the benchmark")]
struct Options {
    /// Configuration file.
    #[arg(long)]
    config: PathBuf,
}

/// Areas with a native twin. Others run as components.
const TWINS: [(&str, Make); 2] =
    [("support", area_support::area), ("evidence", area_evidence::area)];

/// Installs each twin in place of its component.
fn install_twins(app: &App) -> anyhow::Result<()> {
    for (name, make) in TWINS {
        let snapshot = app.registry.snapshot();
        let Some(area) = snapshot.area(name) else { continue };
        let twin = LoadedArea {
            digest: area.digest.clone(),
            manifest: Manifest::clone(&area.manifest),
            code: Arc::new(NativeArea::new(make, Arc::clone(&area.code))),
            generation: area.generation,
            imports: area.imports.clone(),
            compiled_in: None,
        };
        let version = app.registry.compile(twin)?;
        let plan = app.registry.plan(name, AreaTargetState::Live(&version))?;
        let installed = app.registry.activate(plan);
        anyhow::ensure!(installed.is_some(), "area {name} changed meanwhile");
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let config =
        Config::load(&ConfigSources { file: Some(options.config), ..ConfigSources::default() })?;
    telemetry::start_logging(&config.log)?;
    let install = |app: &App, _| {
        if let Err(error) = install_twins(app) {
            tracing::error!(%error, "the native twins cannot be installed");
            std::process::exit(1);
        }
    };
    let hooks =
        ReloadAndServingHooks { on_serving: Box::new(install), ..ReloadAndServingHooks::default() };
    Box::pin(assurance::serve::run(config, hooks)).await
}
