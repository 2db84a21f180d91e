//! The service with the logic of its areas compiled in natively, for the
//! benchmark: the same middleware, store and area code, no WebAssembly.
//!
//! It takes the same configuration as `assurance serve`. Manifests come from
//! the components, so routes, schemas and indexes are the very same; only what
//! runs behind a route is exchanged.

mod answers;
mod convert;
mod twin;

use std::path::PathBuf;
use std::sync::Arc;

use assurance::config::{Config, Source};
use assurance::runtime::Loaded;
use assurance::serve::Hooks;
use assurance::telemetry;
use clap::Parser;

use crate::twin::{Make, Twin};

#[derive(Parser)]
#[command(about = "Serve with natively compiled areas, for the benchmark")]
struct Options {
    /// The configuration file.
    #[arg(long)]
    config: PathBuf,
}

/// The areas that have a twin; the others run as components.
const TWINS: [(&str, Make); 2] =
    [("support", area_support::area), ("evidence", area_evidence::area)];

/// Puts the native twin in the component's place, where there is one.
fn twin_of(loaded: Loaded) -> Loaded {
    match TWINS.iter().find(|(name, _)| *name == loaded.manifest.name) {
        Some((_, area)) => Loaded { code: Arc::new(Twin::new(*area, loaded.code)), ..loaded },
        None => loaded,
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let config = Config::load(&Source { file: Some(options.config), ..Source::default() })?;
    telemetry::start_logging(&config.log)?;
    let hooks = Hooks { code_of: twin_of, ..Hooks::default() };
    Box::pin(assurance::serve::run(config, hooks)).await
}
