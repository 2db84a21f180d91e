//! Prints the configuration as an annotated file. The descriptions are the doc
//! comments of the fields.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

use super::Config;

/// Returns the configuration as an annotated TOML file. Values equal to those
/// of `defaults` are commented out; `None`: no value is.
pub(super) fn documented_toml(config: &Config, defaults: Option<&Config>) -> String {
    let schema = schemars::schema_for!(Config).to_value();
    let mut value = serde_json::to_value(config).unwrap_or_default();
    let defaults = defaults.and_then(|defaults| serde_json::to_value(defaults).ok());
    let defaults = defaults.unwrap_or_default();
    reveal_database_host(config, &mut value);
    let mut document = ConfigTomlWriter { out: String::new(), schema: &schema };
    if let Json::Object(fields) = value {
        document.table("", &fields, &defaults, &schema);
    }
    document.out
}

/// Shows the database URL in the output with `***` as its password and without
/// its query, so that the host is visible. A URL that cannot be parsed stays
/// masked.
fn reveal_database_host(config: &Config, value: &mut Json) {
    let Some(url) = &config.database.url else { return };
    let Ok(mut url) = url::Url::parse(url.reveal()) else { return };
    if url.password().is_some() && url.set_password(Some("***")).is_err() {
        return;
    }
    url.set_query(None);
    value["database"]["url"] = Json::String(url.to_string());
}

struct ConfigTomlWriter<'a> {
    out: String,
    /// JSON Schema of the whole configuration; its descriptions become the
    /// comments of the TOML file.
    schema: &'a Json,
}

impl ConfigTomlWriter<'_> {
    fn table(&mut self, name: &str, fields: &Map<String, Json>, defaults: &Json, schema: &Json) {
        let of = |key: &str| match schema["properties"].get(key) {
            Some(property) => property,
            // The operator chose the key, because this part is a map.
            None => &schema["additionalProperties"],
        };
        for (key, value) in fields.iter().filter(|(_, value)| !value.is_object()) {
            comment(&mut self.out, description(of(key)));
            self.value(key, value, defaults.get(key) == Some(value));
        }
        for (key, value) in fields {
            let Json::Object(inner) = value else { continue };
            let full = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            self.out.push('\n');
            let resolved = resolve(of(key), self.schema);
            match description(of(key)) {
                "" => comment(&mut self.out, description(resolved)),
                text => comment(&mut self.out, text),
            }
            let _ = writeln!(self.out, "[{full}]");
            self.table(&full, inner, &defaults[key], resolved);
        }
    }

    /// Writes one configuration key with its value to the TOML file. A default
    /// is commented out with `#` but without a space, unlike a description.
    fn value(&mut self, key: &str, value: &Json, is_default: bool) {
        let key = toml_key(key);
        let _ = match toml_value(value) {
            Some(text) if is_default => writeln!(self.out, "#{key} = {text}"),
            Some(text) => writeln!(self.out, "{key} = {text}"),
            None => writeln!(self.out, "#{key} ="),
        };
    }
}

fn comment(out: &mut String, text: &str) {
    for line in text.lines() {
        let _ = writeln!(out, "# {line}");
    }
}

fn description(schema: &Json) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// Returns the definition that the schema's `$ref` names; the schema itself if
/// it has none.
pub(super) fn resolve<'a>(schema: &'a Json, all: &'a Json) -> &'a Json {
    match schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
        Some(pointer) => all.pointer(pointer).unwrap_or(schema),
        None => schema,
    }
}

fn toml_key(key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !key.is_empty() && key.bytes().all(bare) {
        key.to_owned()
    } else {
        toml::Value::String(key.to_owned()).to_string()
    }
}

fn toml_value(value: &Json) -> Option<String> {
    match value {
        Json::Null => None,
        Json::Array(items) => {
            let items: Vec<String> = items.iter().filter_map(toml_value).collect();
            Some(format!("[{}]", items.join(", ")))
        }
        Json::String(text) => Some(toml::Value::String(text.clone()).to_string()),
        other => Some(other.to_string()),
    }
}
