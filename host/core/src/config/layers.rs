//! Configuration sources, merged key by key. A later layer wins; lists are
//! replaced, not joined.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use serde_json::{Map, Value as Json};

use super::{Config, ConfigError, ConfigKeyError};

/// Prefix of the environment variables that set configuration keys, in lower
/// case. In their names, `__` separates the parts of a key.
const PREFIX: &str = "assurance_";

/// One configuration source: its keys as a JSON tree, and its name for error
/// messages.
#[derive(Debug)]
pub(super) struct ConfigLayer {
    name: String,
    keys: Map<String, Json>,
}

impl ConfigLayer {
    pub(super) fn new(name: impl Into<String>, keys: Map<String, Json>) -> Self {
        Self { name: name.into(), keys }
    }

    /// Reads a TOML file as a configuration source.
    pub(super) fn file(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |why: &dyn std::fmt::Display| {
            ConfigError::Unreadable(format!("{}: {why}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(&error))?;
        let keys =
            toml::from_str(&text).map_err(|error| unreadable(&syntax_error(&text, &error)))?;
        Ok(Self::new(path.display().to_string(), keys))
    }

    /// Reads the environment variables that set configuration keys as a
    /// configuration source. A value that parses as TOML (`8`, `true`, `["a",
    /// "b"]`) has that type; any other value is text. Ignores variables of
    /// other programs, which may not be UTF-8.
    pub(super) fn environment(
        variables: impl Iterator<Item = (OsString, OsString)>,
        is_configuration: impl Fn(&str) -> bool,
    ) -> Result<Self, ConfigError> {
        let mut keys = Map::new();
        for (name, value) in variables {
            let Some(key) = unprefixed(&name).filter(|key| is_configuration(key)) else {
                continue;
            };
            let text = value.into_string().map_err(|_| not_text(&key))?;
            let one = key.rsplit("__").fold(typed(text), |value, part| {
                Json::Object(Map::from_iter([(part.to_owned(), value)]))
            });
            if let Json::Object(one) = one {
                merge(&mut keys, one);
            }
        }
        Ok(Self::new("the environment", keys))
    }

    /// Moves the keys of this configuration source into the section `section`,
    /// and rejects keys outside `allowed`.
    pub(super) fn within(self, section: &str, allowed: &[&str]) -> Result<Self, ConfigError> {
        if let Some(key) = self.keys.keys().find(|key| !allowed.contains(&key.as_str())) {
            let problem = format!("there is no such key; known here: {}", allowed.join(", "));
            let wrong = ConfigKeyError { key: key.clone(), problem, source_name: self.name };
            return Err(ConfigError::Keys(vec![wrong]));
        }
        let keys = Map::from_iter([(section.to_owned(), Json::Object(self.keys))]);
        Ok(Self { name: self.name, keys })
    }

    /// Returns whether this configuration source sets the dotted key or, for a
    /// key with an index such as `a.b[0]`, the list that contains it.
    fn sets(&self, key: &str) -> bool {
        let mut keys = Some(&self.keys);
        key.split('.').all(|part| {
            let part = part.split('[').next().unwrap_or(part);
            let value = keys.and_then(|keys| keys.get(part));
            keys = value.and_then(Json::as_object);
            value.is_some()
        })
    }
}

/// Returns the name of a variable `ASSURANCE_…` without its prefix and in lower
/// case; `None` for other variables.
pub(super) fn unprefixed(name: &OsStr) -> Option<String> {
    name.to_str()?.to_ascii_lowercase().strip_prefix(PREFIX).map(str::to_owned)
}

/// Returns the error of an environment variable whose value is not UTF-8. `key`
/// is the variable's name without its prefix.
fn not_text(key: &str) -> ConfigError {
    ConfigError::Keys(vec![ConfigKeyError {
        key: key.replace("__", "."),
        problem: "is not UTF-8 text".to_owned(),
        source_name: "the environment".to_owned(),
    }])
}

/// Returns the position and cause of a TOML syntax error. The error's own text
/// repeats the line, which may contain a secret.
fn syntax_error(text: &str, error: &toml::de::Error) -> String {
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return error.message().to_owned();
    };
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|one| *one != '\n').count() + 1;
    format!("line {line}, column {column}: {}", error.message())
}

fn typed(text: String) -> Json {
    match toml::from_str::<toml::Table>(&format!("value = {text}")) {
        Ok(mut table) if table.len() == 1 => match table.remove("value") {
            Some(toml::Value::Datetime(_)) | None => Json::String(text),
            Some(value) => serde_json::to_value(value).unwrap_or(Json::String(text)),
        },
        _ => Json::String(text),
    }
}

/// Maximum number of reported keys that do not exist or cannot be deserialized.
/// Each costs another pass over all configuration keys.
const MAX_ERRORS: usize = 50;

/// Merges the configuration sources over the defaults; the last source wins. A
/// key that cannot be deserialized gets its default, and its error is in the
/// second result.
pub(super) fn merged(layers: &[ConfigLayer]) -> (Config, Vec<ConfigKeyError>) {
    let defaults = match serde_json::to_value(Config::default()) {
        Ok(Json::Object(keys)) => keys,
        _ => Map::new(),
    };
    let mut keys = defaults.clone();
    for layer in layers {
        merge(&mut keys, layer.keys.clone());
    }
    let mut wrong = Vec::new();
    while wrong.len() < MAX_ERRORS {
        match serde_path_to_error::deserialize(Json::Object(keys.clone())) {
            Ok(config) => return (config, wrong),
            Err(error) => {
                let key = error.path().to_string();
                let refused = unread(key, error.into_inner().to_string(), layers);
                let is_reset = reset(&mut keys, Some(&defaults), &refused.key);
                wrong.push(refused);
                if !is_reset {
                    break;
                }
            }
        }
    }
    (Config::default(), wrong)
}

/// Sets a dotted configuration key to its default; for a key with an index, the
/// list that contains it. Removes the key if it has no default, or has it
/// already. Returns whether the key existed.
fn reset(keys: &mut Map<String, Json>, defaults: Option<&Map<String, Json>>, key: &str) -> bool {
    let (first, rest) = match key.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (key, None),
    };
    let first = first.split('[').next().unwrap_or(first);
    let default = defaults.and_then(|defaults| defaults.get(first));
    match (keys.get_mut(first), rest, default) {
        (Some(Json::Object(inner)), Some(rest), _) => {
            reset(inner, default.and_then(Json::as_object), rest)
        }
        (Some(value), _, Some(default)) if value != default => {
            value.clone_from(default);
            true
        }
        _ => keys.remove(first).is_some(),
    }
}

fn merge(into: &mut Map<String, Json>, from: Map<String, Json>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Json::Object(into)), Json::Object(from)) => merge(into, from),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// Beginnings of parsers' messages that lack the fix, each with the fix.
const FIXES: [(&str, &str); 2] = [
    ("invalid socket address", "write an address and a port, like 127.0.0.1:8080"),
    ("UUID parsing failed", "write the id of a workspace, not its slug"),
];

/// Returns the error of a configuration key that does not exist, or whose value
/// cannot be deserialized.
fn unread(mut key: String, mut problem: String, layers: &[ConfigLayer]) -> ConfigKeyError {
    if let Some((field, known)) = unknown_field(&problem) {
        if key.rsplit('.').next() != Some(&field) {
            key = format!("{key}.{field}");
        }
        problem = format!("there is no such key; known here: {known}");
    }
    if let Some((_, fix)) = FIXES.iter().find(|(message, _)| problem.starts_with(message)) {
        problem = format!("{problem}; {fix}");
    }
    refusal(key, problem, layers)
}

/// Returns the error of a configuration key, with the name of the last source
/// that sets the key.
pub(super) fn refusal(key: String, problem: String, layers: &[ConfigLayer]) -> ConfigKeyError {
    let layer = layers.iter().rev().find(|layer| layer.sets(&key));
    let source_name = layer.map_or("the defaults", |layer| &layer.name).to_owned();
    ConfigKeyError { key, problem, source_name }
}

/// Returns the unknown field and the list of known fields from serde's message
/// "unknown field `a`, expected one of `b`, `c`".
fn unknown_field(message: &str) -> Option<(String, String)> {
    let rest = message.strip_prefix("unknown field `")?;
    let (field, known) = rest.split_once('`')?;
    let known = known.trim_start_matches(", expected ").trim_start_matches("one of ");
    Some((field.to_owned(), known.replace('`', "")))
}
