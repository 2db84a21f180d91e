//! Puts the sources of the configuration together.

use std::path::PathBuf;

use figment::error::Kind;
use figment::providers::{Env, Format, Serialized, Toml};
use figment::{Figment, Profile};
use serde_json::{Map, Value as Json};

use super::Config;

/// Variables with the prefix that are not configuration: what the developer's
/// tasks and the command line tell themselves, beside `ASSURANCE_TEST_…`.
const NOT_CONFIGURATION: [&str; 7] =
    ["areas", "bin", "config", "corpus", "fixtures", "operators_token", "operators_url"];

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that was named is not there.
    #[error(
        "there is no configuration file at {0}; give another --config, or leave it out to use the defaults"
    )]
    NoFile(PathBuf),
    /// One key is wrong.
    #[error("configuration key {key}: {problem} (set in {source_name})")]
    Key {
        /// Dotted.
        key: String,
        /// What is wrong and the way out.
        problem: String,
        /// Which file, or the environment.
        source_name: String,
    },
    /// A source cannot be read as a whole.
    #[error("the configuration cannot be read: {0}")]
    Unreadable(String),
}

/// Flags of the command line, as a tree of configuration keys.
#[derive(Clone, Debug, Default)]
pub struct Flags(Map<String, Json>);

impl Flags {
    /// Sets a dotted key where the flag was given.
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

/// Where the configuration comes from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// A TOML file, which must exist; nothing: `assurance.toml` of the working
    /// folder if it is there.
    pub file: Option<PathBuf>,
    /// Leave the environment out (tests).
    pub without_environment: bool,
    /// Win over everything.
    pub flags: Flags,
}

pub(super) fn load(source: &Source) -> Result<Config, ConfigError> {
    let mut figment = Figment::from(Serialized::defaults(Config::default()));
    if let Some(file) = toml_file(source)? {
        figment = figment.merge(Toml::file_exact(file));
    }
    if !source.without_environment {
        figment = figment.merge(environment());
    }
    let flags = Serialized::from(&source.flags.0, Profile::Default);
    let config: Config = figment.merge(flags).extract().map_err(explain)?;
    config.check()?;
    Ok(config)
}

fn toml_file(source: &Source) -> Result<Option<PathBuf>, ConfigError> {
    let ordinary = PathBuf::from("assurance.toml");
    match &source.file {
        Some(file) if file.is_file() => Ok(Some(file.clone())),
        Some(file) => Err(ConfigError::NoFile(file.clone())),
        None => Ok(ordinary.is_file().then_some(ordinary)),
    }
}

fn environment() -> Env {
    Env::prefixed("ASSURANCE_")
        .filter(|key| {
            let name = key.as_str().to_ascii_lowercase();
            !NOT_CONFIGURATION.contains(&name.as_str()) && !name.starts_with("test_")
        })
        .split("__")
}

/// Says the same as the library, but names key, source and way out.
fn explain(error: figment::Error) -> ConfigError {
    let mut path: Vec<String> = error.path.clone();
    let source_name = error.metadata.as_ref().map_or_else(
        || "the flags".to_owned(),
        |metadata| match &metadata.source {
            Some(source) => source.to_string(),
            None => metadata.name.to_string(),
        },
    );
    let problem = match &error.kind {
        Kind::UnknownField(field, known) => {
            if path.last() != Some(field) {
                path.push(field.clone());
            }
            format!("there is no such key; known here: {}", known.join(", "))
        }
        Kind::UnknownVariant(variant, known) => {
            format!("{variant:?} is not one of {}", known.join(", "))
        }
        other => other.to_string(),
    };
    if path.is_empty() {
        return ConfigError::Unreadable(format!("{problem} ({source_name})"));
    }
    ConfigError::Key { key: path.join("."), problem, source_name }
}
