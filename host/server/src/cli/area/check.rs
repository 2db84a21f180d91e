//! `assurance area check`: runs the checks of a deployment locally, without a
//! service.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value as Json, json};

use super::super::CommonOptions;
use super::super::operators::OperatorsClientArgs;
use super::super::output;
use super::super::table::items;
use super::shown;
use super::source::ComponentSource;
use crate::http;
use assurance_contract::ContractLimits;
use assurance_contract::compatibility::{self, Compatibility};
use assurance_core::config::{Config, ConfigSources, FlagOverrides};
use assurance_core::domain::manifest::Manifest;
use assurance_runtime::{LoadedArea, Runtime, Settings, this_program};
use assurance_service::registry::{AreaTargetState, Registry};
use assurance_work::LimitsByArea;

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaCheckArgs {
    #[command(flatten)]
    source: ComponentSource,
    /// Compare with the live version of a running service.
    #[arg(long)]
    live: bool,
    /// Compare with a manifest in a file, from `assurance area check
    /// --manifest` or `GET /areas/NAME/manifest`.
    #[arg(long, value_name = "FILE", conflicts_with = "live")]
    against: Option<PathBuf>,
    /// Print only the component's manifest.
    #[arg(long)]
    manifest: bool,
    #[command(flatten)]
    target: OperatorsClientArgs,
}

impl AreaCheckArgs {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = configuration(common, &self.source)?;
        let loaded = load(&config, &self.source).await?;
        if self.manifest {
            output::line(serde_json::to_string_pretty(&loaded.manifest)?);
            return Ok(());
        }
        let manifest = loaded.manifest.clone();
        let (digest, imports) = (loaded.digest.clone(), loaded.imports.clone());
        let generation = loaded.generation;
        let registry = Registry::new(
            http::host_operations(),
            ContractLimits::from(&config),
            LimitsByArea::default(),
        );
        let version = registry.compile(loaded)?;
        registry.plan(&manifest.name, AreaTargetState::Live(&version))?;
        let mut told = vec![
            ("area", json!(manifest.name)),
            ("version", json!(manifest.version)),
            ("digest", json!(digest)),
            ("generation", json!(generation)),
            ("imports", json!(imports)),
            ("capabilities", json!(manifest.capabilities)),
        ];
        let (mut verdict, mut differences) = (Compatibility::Safe, Vec::new());
        let other = other(self.target, self.against, self.live, &manifest, common).await?;
        if self.live && other.is_none() {
            output::note(format!("no area {:?} is live to compare with", manifest.name));
            told.push(("against", Json::Null));
        }
        if let Some(other) = other {
            let report = compatibility::compare(&other, &manifest);
            verdict = report.verdict();
            told.push(("against", json!(other.version)));
            told.push(("verdict", json!(verdict)));
            if common.json {
                told.push(("differences", json!(report.differences)));
            }
            differences = report.differences.clone();
            let asks = compatibility::additional_capabilities(&other, &manifest);
            told.push(("additional_capabilities", json!(asks)));
        }
        common.print_values(&told);
        if !common.json {
            shown::differences(&differences);
        }
        anyhow::ensure!(
            verdict == Compatibility::Safe,
            "it would break those who rely on the other"
        );
        Ok(())
    }
}

/// Loads the configuration. If its `areas.dir` has no `areas.toml`, the one next
/// to the component applies.
fn configuration(common: &CommonOptions, source: &ComponentSource) -> anyhow::Result<Config> {
    let areas_folder = source.folder().map(Path::to_path_buf);
    let source = ConfigSources { areas_folder, ..common.source(FlagOverrides::default()) };
    Ok(Config::load(&source)?)
}

/// Loads the component as the service does: compiled in a child process with
/// limits, so that a hostile file cannot exhaust this machine. Stores nothing.
async fn load(config: &Config, source: &ComponentSource) -> anyhow::Result<LoadedArea> {
    let settings = Settings { compiler: this_program(), ..Settings::from(config) };
    let runtime = Runtime::offline(settings)?;
    let fetched = source.fetch(config.limits.max_component_bytes).await?;
    let component = Arc::from(&*fetched.component);
    Ok(runtime.load(component, |area| config.areas.granted(area)).await?)
}

/// Returns the manifest that `area check` compares the component with; `None`
/// if the options name none, or no version is live.
async fn other(
    target: OperatorsClientArgs,
    against: Option<PathBuf>,
    live: bool,
    manifest: &Manifest,
    common: &CommonOptions,
) -> anyhow::Result<Option<Manifest>> {
    let other = match against {
        Some(file) => super::super::input::json(&file)?,
        None if live => match live_manifest(target, &manifest.name, common).await? {
            Some(other) => other,
            None => return Ok(None),
        },
        None => return Ok(None),
    };
    let other = serde_json::from_value(other);
    Ok(Some(other.context("that is not a manifest as this version of assurance writes them")?))
}

/// Returns the manifest of the live version; `None` if no version is live.
async fn live_manifest(
    target: OperatorsClientArgs,
    area: &str,
    common: &CommonOptions,
) -> anyhow::Result<Option<Json>> {
    let operators = target.connect(common)?;
    let areas = operators.get("/areas").await?;
    let serves = |one: &Json| one["name"] == area && one["digest"].is_string();
    if !items(&areas["areas"]).iter().any(serves) {
        return Ok(None);
    }
    operators.get(&format!("/areas/{area}/manifest")).await.map(Some)
}
