//! Loads the configuration from its sources.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

use super::Config;
use super::layers::{self, ConfigLayer};

/// Configuration keys outside of all sections. All other keys have `__` in the
/// names of their environment variables.
pub(super) const OUTSIDE_SECTIONS: [&str; 2] = ["data_dir", "development"];

/// Environment variables `ASSURANCE_…` that are no configuration keys, but that
/// the development tasks and the command line read. Without the prefix, in
/// lower case.
const NOT_CONFIGURATION: [&str; 7] =
    ["areas", "bin", "config", "corpus", "fixtures", "operators_token", "operators_url"];

/// Name of the file, in the folder of components, that contains the grants,
/// limits and settings of these areas.
pub const AREAS_FILE: &str = "areas.toml";

/// Errors of loading the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file named by `--config` does not exist.
    #[error(
        "there is no configuration file at {0}; give another --config, or leave it out to use the defaults"
    )]
    NoFile(PathBuf),
    /// Configuration keys have invalid values, or do not exist.
    #[error("{}", lines(.0))]
    Keys(Vec<ConfigKeyError>),
    /// A configuration file cannot be read or parsed. Contains its path and the
    /// reason.
    #[error("the configuration cannot be read: {0}")]
    Unreadable(String),
}

/// Error of one configuration key: its value is invalid, or there is no such
/// key.
#[derive(Debug, thiserror::Error)]
#[error("configuration key {key}: {problem} (set in {source_name})")]
pub struct ConfigKeyError {
    /// Dotted path of the configuration key.
    pub key: String,
    /// Description of what is wrong with the key and how to fix it.
    pub problem: String,
    /// Source that sets the key: the path of a file, or `the environment`, `the
    /// flags` or `the defaults`.
    pub source_name: String,
}

fn lines(errors: &[ConfigKeyError]) -> String {
    errors.iter().map(ConfigKeyError::to_string).collect::<Vec<_>>().join("\n")
}

/// Configuration values that command-line flags set, as a tree of configuration
/// keys.
#[derive(Clone, Debug, Default)]
pub struct FlagOverrides(Map<String, Json>);

impl FlagOverrides {
    /// Sets a dotted configuration key to the value of a command-line flag;
    /// does nothing if the value is `None`.
    #[must_use]
    pub fn set<T: serde::Serialize>(mut self, key: &str, value: Option<T>) -> Self {
        let Some(value) = value.and_then(|given| serde_json::to_value(given).ok()) else {
            return self;
        };
        let mut tree = &mut self.0;
        let mut parts: Vec<&str> = key.split('.').collect();
        let Some(last) = parts.pop() else { return self };
        for part in parts {
            let child = tree.entry(part).or_insert_with(|| Json::Object(Map::new()));
            let Json::Object(object) = child else { return self };
            tree = object;
        }
        tree.insert(last.to_owned(), value);
        self
    }
}

/// All sources that override the configuration's defaults.
#[derive(Clone, Debug, Default)]
pub struct ConfigSources {
    /// Path of the TOML file with the configuration, which must exist. `None`:
    /// `assurance.toml` in the working folder, if it exists.
    pub file: Option<PathBuf>,
    /// Whether environment variables are ignored (for tests).
    pub without_environment: bool,
    /// Command-line flags, which override all other sources.
    pub flags: FlagOverrides,
    /// Folder whose `areas.toml` is used if the folder of components
    /// (`areas.dir`) has none.
    pub areas_folder: Option<PathBuf>,
}

/// The loaded configuration, and its defaults: the values without the
/// operator's file, environment and flags, but with `areas.toml`.
pub(super) struct ConfigAndDefaults {
    pub(super) config: Config,
    pub(super) defaults: Config,
}

pub(super) fn load(source: &ConfigSources) -> Result<ConfigAndDefaults, ConfigError> {
    let mut layers = Vec::new();
    if let Some(file) = toml_file(source)? {
        layers.push(ConfigLayer::file(&file)?);
    }
    if !source.without_environment {
        layers.push(ConfigLayer::environment(std::env::vars_os(), is_configuration)?);
    }
    layers.push(ConfigLayer::new("the flags", source.flags.0.clone()));
    let (before, _) = layers::merged(&layers);
    let (policy, mut wrong) = match areas_policy(&before, source.areas_folder.as_deref()) {
        Ok(policy) => (policy, Vec::new()),
        Err(ConfigError::Keys(wrong)) => (None, wrong),
        Err(error) => return Err(error),
    };
    let is_policy = policy.is_some();
    if let Some(policy) = policy {
        layers.insert(0, policy);
    }
    let (config, unread) = layers::merged(&layers);
    wrong.extend(unread);
    let found = config.check().0.into_iter();
    wrong.extend(found.map(|(key, problem)| layers::refusal(key, problem, &layers)));
    if !wrong.is_empty() {
        return Err(ConfigError::Keys(wrong));
    }
    layers.truncate(usize::from(is_policy));
    let (defaults, _) = layers::merged(&layers);
    Ok(ConfigAndDefaults { config, defaults })
}

/// Reads `areas.toml` from the folder of components, or else from `other`: the
/// `grants`, `limits` and `settings` of its areas, which are keys of the section
/// `areas`. `None` if there is no such file.
fn areas_policy(config: &Config, other: Option<&Path>) -> Result<Option<ConfigLayer>, ConfigError> {
    let files = [Some(config.areas_dir().join(AREAS_FILE)), other.map(|dir| dir.join(AREAS_FILE))];
    let Some(file) = files.into_iter().flatten().find(|file| file.is_file()) else {
        return Ok(None);
    };
    ConfigLayer::file(&file)?.within("areas", &["grants", "limits", "settings"]).map(Some)
}

fn toml_file(source: &ConfigSources) -> Result<Option<PathBuf>, ConfigError> {
    let ordinary = PathBuf::from("assurance.toml");
    match &source.file {
        Some(file) if file.is_file() => Ok(Some(file.clone())),
        Some(file) => Err(ConfigError::NoFile(file.clone())),
        None => Ok(ordinary.is_file().then_some(ordinary)),
    }
}

/// Returns whether a variable, without its prefix and in lower case, is a
/// configuration key.
pub(super) fn is_configuration(name: &str) -> bool {
    name.contains("__") || OUTSIDE_SECTIONS.contains(&name)
}

/// Returns the environment variables `ASSURANCE_…` without a meaning: a
/// misspelled key, or a variable of another program, such as the
/// `ASSURANCE_PORT` that Kubernetes sets for a Service of this name.
#[must_use]
pub fn ignored_variables() -> Vec<String> {
    ignored(std::env::vars_os().map(|(name, _)| name))
}

pub(super) fn ignored(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let is_known = |name: &str| {
        is_configuration(name) || NOT_CONFIGURATION.contains(&name) || name.starts_with("test_")
    };
    names
        .filter(|name| layers::unprefixed(name).is_some_and(|name| !is_known(&name)))
        .filter_map(|name| name.into_string().ok())
        .collect()
}
