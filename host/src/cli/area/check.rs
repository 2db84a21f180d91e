//! `assurance area check`: what the service would say, without a service.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::super::Common;
use super::super::operators::Target;
use super::super::output;
use super::source::Source;
use crate::config::{Config, Flags};
use crate::domain::manifest::Manifest;
use crate::http;
use crate::registry::compatibility::{self, Verdict};
use crate::registry::{Ceilings, Registry};
use crate::runtime::{Loaded, Runtime, Settings};
use crate::work::LimitsByArea;

#[derive(Debug, Args)]
pub(in crate::cli) struct Check {
    #[command(flatten)]
    source: Source,
    /// Compare with the version that answers at a running service.
    #[arg(long)]
    live: bool,
    /// Compare with a manifest, from `assurance area check --manifest` or
    /// `GET /areas/NAME/manifest`.
    #[arg(long, value_name = "FILE", conflicts_with = "live")]
    against: Option<PathBuf>,
    /// Print the component's manifest and nothing else.
    #[arg(long)]
    manifest: bool,
    #[command(flatten)]
    target: Target,
}

impl Check {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let config = common.load(Flags::default())?;
        let loaded = load(&config, &self.source).await?;
        if self.manifest {
            output::line(serde_json::to_string_pretty(&loaded.manifest)?);
            return Ok(());
        }
        let manifest = loaded.manifest.clone();
        let (digest, imports) = (loaded.digest.clone(), loaded.imports.clone());
        let generation = loaded.generation;
        Registry::new(http::host_operations(), Ceilings::from(&config), LimitsByArea::default())
            .plan(loaded)?;
        let mut told = vec![
            ("area", json!(manifest.name)),
            ("version", json!(manifest.version)),
            ("digest", json!(digest)),
            ("generation", json!(generation)),
            ("imports", json!(imports)),
            ("capabilities", json!(manifest.capabilities)),
        ];
        let mut verdict = Verdict::Safe;
        if let Some(other) = other(self.target, self.against, self.live, &manifest, common).await? {
            let report = compatibility::compare(&other, &manifest);
            verdict = report.verdict();
            told.push(("against", json!(other.version)));
            told.push(("verdict", json!(verdict)));
            told.push(("differences", json!(report.differences)));
            let asks = compatibility::asks_beyond(&other, &manifest);
            told.push(("asks_beyond", json!(asks)));
        }
        common.output().values(&told);
        anyhow::ensure!(verdict == Verdict::Safe, "it would break those who rely on the other");
        Ok(())
    }
}

/// As the service loads it, keeping nothing.
async fn load(config: &Config, source: &Source) -> anyhow::Result<Loaded> {
    let runtime = Runtime::offline(Settings::from(config))?;
    let fetched = source.fetch(config.limits.max_component_bytes).await?;
    let component = Arc::from(&*fetched.component);
    Ok(runtime.load(component, |area| config.areas.granted(area)).await?)
}

/// The manifest to compare with, if one is named.
async fn other(
    target: Target,
    against: Option<PathBuf>,
    live: bool,
    manifest: &Manifest,
    common: &Common,
) -> anyhow::Result<Option<Manifest>> {
    let other = match against {
        Some(file) => super::super::input::json(&file)?,
        None if live => {
            target.connect(common)?.get(&format!("/areas/{}/manifest", manifest.name)).await?
        }
        None => return Ok(None),
    };
    let other = serde_json::from_value(other);
    Ok(Some(other.context("that is not a manifest as this version of assurance writes them")?))
}
