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

use area_sdk::Area;
use assurance::config::Config;
use assurance::work::AreaCode;
use clap::Parser;

#[derive(Parser)]
#[command(about = "Serve with natively compiled areas, for the benchmark")]
struct Options {
    /// The configuration file.
    #[arg(long)]
    config: PathBuf,
}

/// The areas that have a twin; the others run as components.
const TWINS: [(&str, fn() -> Area); 2] = [
    ("support", area_support::area),
    ("evidence", area_evidence::area),
];

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let config = Config::load(Some(&options.config))?;
    assurance::serve::run_with(config, |loaded| {
        let Some((_, area)) = TWINS.iter().find(|(name, _)| *name == loaded.manifest.name) else {
            return loaded;
        };
        let code: Arc<dyn AreaCode> = Arc::new(twin::Twin::new(*area, loaded.code));
        assurance::runtime::Loaded { code, ..loaded }
    })
}
