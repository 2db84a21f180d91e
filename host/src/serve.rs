//! Wires the service: configuration, stores, runtime, workers, router, drain.

use crate::config::Config;

/// Serves until SIGTERM.
///
/// # Errors
/// Where something cannot be opened or bound.
#[expect(clippy::unused_async, reason = "not wired yet")]
pub async fn run(_config: Config) -> anyhow::Result<()> {
    anyhow::bail!("serving is not wired yet")
}
