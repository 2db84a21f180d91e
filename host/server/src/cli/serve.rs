//! `assurance serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::CommonOptions;
use super::demo::{self, PreparedDemo};
use crate::serve::{DatabaseLock, ReloadAndServingHooks};
use crate::telemetry;
use assurance_core::config::{Config, FlagOverrides, ignored_variables};
use assurance_service::app::App;

/// Fictitious installation URL of the source host application in the
/// demonstration.
const DEMO_APP_URL: &str = "https://repohost.example/apps/workspace-assurance/installations/new";

/// Serve the API until SIGTERM.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Address and port of the API (api.listen); port 0 selects a free one.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Address and port of the operators' API (operators.listen).
    #[arg(long, value_name = "ADDRESS")]
    operators_listen: Option<SocketAddr>,
    /// Load every .wasm file in this folder (areas.dir).
    #[arg(long, value_name = "DIR")]
    areas: Option<PathBuf>,
    /// Reload a component when its file changes (areas.watch).
    #[arg(long)]
    watch: bool,
    /// Enable development mode (development).
    #[arg(long)]
    development: bool,
    /// Create a demonstration workspace if there is none, and print how to call
    /// it. Implies --development, egress.allow_loopback and sessions of ten
    /// years.
    #[arg(long)]
    demo: bool,
    /// Record calls of areas: `faults`, or a percentage of the requests, or
    /// both (areas.record).
    #[arg(long, value_name = "faults|PERCENT", value_delimiter = ',', value_parser = to_record)]
    record: Vec<RecordedCallSelection>,
    /// Log format: human or json (log.format).
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
}

/// Value of `--record`.
#[derive(Clone, Copy, Debug)]
enum RecordedCallSelection {
    Faults,
    Percent(f64),
}

fn to_record(text: &str) -> Result<RecordedCallSelection, String> {
    if text == "faults" {
        return Ok(RecordedCallSelection::Faults);
    }
    let percent = text.parse().map_err(|_| "give faults, or so many of 100 requests")?;
    Ok(RecordedCallSelection::Percent(percent))
}

impl Serve {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let faults = self.record.iter().any(|one| matches!(one, RecordedCallSelection::Faults));
        let percent = self.record.iter().find_map(|one| match one {
            RecordedCallSelection::Percent(percent) => Some(*percent),
            RecordedCallSelection::Faults => None,
        });
        let flags = FlagOverrides::default()
            .set("areas.record.faults", faults.then_some(true))
            .set("areas.record.percent", percent)
            .set("api.listen", self.listen)
            .set("operators.listen", self.operators_listen)
            .set("areas.dir", self.areas)
            .set("areas.watch", self.watch.then_some(true))
            .set("development", self.development.then_some(true))
            .set("log.format", self.log_format);
        let flags = if self.demo { demo::flags(flags) } else { flags };
        let load = {
            let (common, demo) = (common.clone(), self.demo);
            move || load(&common, flags.clone(), demo)
        };
        let config = load()?;
        telemetry::start_logging(&config.log)?;
        let ignored = ignored_variables();
        if !ignored.is_empty() {
            let variables = ignored.join(", ");
            tracing::warn!(variables, "ignored environment variables: not configuration keys");
        }
        let mut hooks =
            if self.demo { demonstrate(&config).await? } else { ReloadAndServingHooks::default() };
        hooks.reload = Some(Box::new(load));
        Box::pin(crate::serve::run(config, hooks)).await
    }
}

fn load(common: &CommonOptions, flags: FlagOverrides, demo: bool) -> anyhow::Result<Config> {
    let mut config = common.load_with(flags)?;
    if demo {
        let set = config.areas.settings.entry("repohost".to_owned()).or_default();
        set.entry("app_url".to_owned()).or_insert_with(|| DEMO_APP_URL.to_owned());
    }
    Ok(config)
}

async fn demonstrate(config: &Config) -> anyhow::Result<ReloadAndServingHooks> {
    // Released before the service takes it.
    let lock = DatabaseLock::take(config)?;
    let demo = PreparedDemo::prepare(config).await?;
    drop(lock);
    let finish = move |app: &App, api: String| {
        let missing = demo::missing_areas(app);
        tokio::spawn(async move {
            if let Err(error) = demo.finish(&api, &missing).await {
                tracing::error!(error = format!("{error:#}"), "cannot create the demonstration");
            }
        });
    };
    Ok(ReloadAndServingHooks { on_serving: Box::new(finish), ..ReloadAndServingHooks::default() })
}
