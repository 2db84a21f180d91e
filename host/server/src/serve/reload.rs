//! SIGHUP: reads the configuration again and applies the settings that can change at runtime.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use tokio::signal::unix::Signal;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::ConfigReloadFn;
use assurance_core::config::{AreaCallLimits, BudgetsConfig, Config, RecordingsConfig};
use assurance_service::app::App;

/// Reloads at each SIGHUP until the service stops, first for a signal that arrived during the
/// start. Without a reload callback, the signal is ignored.
pub(super) fn start(
    app: &App,
    reload: Option<ConfigReloadFn>,
    mut hangups: Signal,
    stop: &CancellationToken,
) -> Option<JoinHandle<()>> {
    let reload = reload?;
    let (app, stop) = (app.clone(), stop.clone());
    Some(tokio::spawn(async move {
        let mut in_force = app.config.clone();
        while let Some(Some(())) = stop.run_until_cancelled(hangups.recv()).await {
            match reload() {
                Ok(config) => in_force = apply(&app, &in_force, config),
                Err(error) => tracing::error!(
                    error = format!("{error:#}"),
                    "reload failed; the configuration is unchanged"
                ),
            }
        }
    }))
}

/// Applies the settings of a reloaded configuration that can change at runtime. Returns that
/// configuration.
fn apply(app: &App, before: &Config, config: Config) -> Config {
    let (fixed_then, fixed_now) = (fixed(&app.config), fixed(&config));
    let restart = changed(&fixed_then, &fixed_now);
    let all = changed(&json(before), &json(&config));
    let applied: Vec<String> = all.into_iter().filter(|key| !restart.contains(key)).collect();
    if let Err(error) = app.recordings.set(config.areas.record.clone()) {
        tracing::error!(%error, "cannot apply areas.record; the recording settings are unchanged");
    }
    app.runtime.set_limits(config.areas.limits.clone());
    app.runtime.budgets().set(config.budgets.clone());
    let none = |keys: Vec<String>| match keys.is_empty() {
        true => "none".to_owned(),
        false => keys.join(", "),
    };
    if restart.is_empty() {
        tracing::info!(applied = none(applied), "reload applied");
    } else {
        let (applied, restart_required) = (none(applied), none(restart));
        tracing::warn!(
            applied,
            restart_required,
            "reload applied; a restart is required for some changed settings"
        );
    }
    config
}

/// Returns the settings that need a restart. Secrets are masked, so changes of them are not
/// detected.
fn fixed(config: &Config) -> Json {
    let mut config = config.clone();
    config.budgets = BudgetsConfig::default();
    let dir = config.areas.record.dir.take();
    config.areas.record = RecordingsConfig { dir, ..RecordingsConfig::default() };
    config.areas.limits.retain(|_, limits| {
        let AreaCallLimits { max_documents, max_document_bytes, .. } = *limits;
        *limits = AreaCallLimits { max_documents, max_document_bytes, ..AreaCallLimits::default() };
        max_documents.is_some() || max_document_bytes.is_some()
    });
    json(&config)
}

fn json(config: &Config) -> Json {
    serde_json::to_value(config).unwrap_or_default()
}

/// Returns the dotted keys whose values differ between two configurations.
fn changed(before: &Json, now: &Json) -> Vec<String> {
    let mut keys = Vec::new();
    compare("", before, now, &mut keys);
    keys
}

fn compare(at: &str, before: &Json, now: &Json, keys: &mut Vec<String>) {
    if before == now {
        return;
    }
    // A section that only one of the configurations has is null in the other.
    let is_section = |value: &Json| value.is_object() || value.is_null();
    if !is_section(before) || !is_section(now) {
        return keys.push(at.to_owned());
    }
    let sections = [before, now].into_iter().filter_map(Json::as_object);
    let names: BTreeSet<&str> = sections.flat_map(|one| one.keys().map(String::as_str)).collect();
    for name in names {
        let path = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
        compare(&path, &before[name], &now[name], keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_again_is_not_fixed_and_the_rest_is() {
        let (config, mut other) = (Config::default(), Config::default());
        other.budgets.warn_percent = 7;
        let limits = AreaCallLimits { max_cpu_ms: Some(7), ..AreaCallLimits::default() };
        other.areas.limits.insert("notes".to_owned(), limits);
        other.areas.record =
            RecordingsConfig { faults: true, percent: 7.0, ..RecordingsConfig::default() };
        assert_eq!(fixed(&config), fixed(&other));
        other.areas.poll_ms = 7;
        assert_eq!(changed(&fixed(&config), &fixed(&other)), ["areas.poll_ms"]);
    }

    #[test]
    fn keys_that_differ_are_named_with_their_sections() {
        let (config, mut other) = (Config::default(), Config::default());
        other.log.filter = "debug".to_owned();
        let limits = AreaCallLimits { max_cpu_ms: Some(7), ..AreaCallLimits::default() };
        other.areas.limits.insert("notes".to_owned(), limits);
        let expected = ["areas.limits.notes.max_cpu_ms", "log.filter"];
        for (one, two) in [(&config, &other), (&other, &config)] {
            assert_eq!(changed(&json(one), &json(two)), expected);
        }
        assert!(changed(&json(&other), &json(&other)).is_empty());
    }
}
