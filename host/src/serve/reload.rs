//! SIGHUP: what can change while the service runs is read again.

use serde_json::Value as Json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Reload;
use crate::app::App;
use crate::config::{AreaLimits, Config, Record};

/// Listens for SIGHUP until the service stops. Where there is nothing to read
/// again, the signal is only told.
pub(super) fn start(
    app: &App,
    reload: Option<Reload>,
    stop: &CancellationToken,
) -> std::io::Result<Option<JoinHandle<()>>> {
    let Some(reload) = reload else { return Ok(None) };
    let mut signals = signal(SignalKind::hangup())?;
    let (app, stop) = (app.clone(), stop.clone());
    Ok(Some(tokio::spawn(async move {
        while let Some(Some(())) = stop.run_until_cancelled(signals.recv()).await {
            match reload() {
                Ok(config) => apply(&app, config),
                Err(error) => tracing::error!(
                    error = format!("{error:#}"),
                    "the configuration stays as it was"
                ),
            }
        }
    })))
}

fn apply(app: &App, config: Config) {
    if fixed(&config) != fixed(&app.config) {
        tracing::warn!(
            "more has changed in the configuration than [budgets], [areas.record] without its dir, \
             and the memory, host calls and processor time of areas.limits: the rest needs a restart"
        );
    }
    if let Err(error) = app.recordings.set(config.areas.record) {
        tracing::error!(%error, "what is recorded stays as it was");
    }
    app.runtime.set_limits(config.areas.limits);
    app.runtime.budgets().set(config.budgets);
    tracing::info!("budgets, limits of areas and what is recorded were read again");
}

/// What does not change while the service runs. Secrets look all the same.
fn fixed(config: &Config) -> Json {
    let mut config = config.clone();
    config.budgets = crate::config::Budgets::default();
    let dir = config.areas.record.dir.take();
    config.areas.record = Record { dir, ..Record::default() };
    config.areas.limits.retain(|_, limits| {
        let AreaLimits { max_documents, max_document_bytes, .. } = *limits;
        *limits = AreaLimits { max_documents, max_document_bytes, ..AreaLimits::default() };
        max_documents.is_some() || max_document_bytes.is_some()
    });
    serde_json::to_value(config).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_again_is_not_fixed_and_the_rest_is() {
        let (config, mut other) = (Config::default(), Config::default());
        other.budgets.warn_percent = 7;
        let limits = AreaLimits { max_cpu_ms: Some(7), ..AreaLimits::default() };
        other.areas.limits.insert("notes".to_owned(), limits);
        other.areas.record = Record { faults: true, percent: 7.0, ..Record::default() };
        assert_eq!(fixed(&config), fixed(&other));
        other.areas.poll_ms = 7;
        assert_ne!(fixed(&config), fixed(&other));
    }
}
