//! The configuration as an annotated file: the descriptions are the doc
//! comments of the fields, so that they are said once.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

use super::Config;

pub(super) fn documented_toml(config: &Config) -> String {
    let schema = schemars::schema_for!(Config).to_value();
    let mut value = serde_json::to_value(config).unwrap_or_default();
    reveal_database_host(config, &mut value);
    let mut out = String::new();
    if let Json::Object(fields) = value {
        write_table(&mut out, "", &fields, &schema, &schema);
    }
    out
}

/// A masked password should not hide which database it is.
fn reveal_database_host(config: &Config, value: &mut Json) {
    let Some(url) = &config.database.url else { return };
    let Ok(mut url) = url::Url::parse(url.reveal()) else { return };
    if url.password().is_some() && url.set_password(Some("***")).is_err() {
        return;
    }
    url.set_query(None);
    value["database"]["url"] = Json::String(url.to_string());
}

fn write_table(
    out: &mut String,
    name: &str,
    fields: &Map<String, Json>,
    schema: &Json,
    all: &Json,
) {
    let of = |key: &str| match schema["properties"].get(key) {
        Some(property) => property,
        // Under a name of the operator's choice.
        None => &schema["additionalProperties"],
    };
    for (key, value) in fields.iter().filter(|(_, value)| !value.is_object()) {
        comment(out, description(of(key)));
        let key = toml_key(key);
        let _ = match toml_value(value) {
            Some(text) => writeln!(out, "{key} = {text}"),
            None => writeln!(out, "# {key} ="),
        };
    }
    for (key, value) in fields {
        let Json::Object(inner) = value else { continue };
        let full = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        out.push('\n');
        let resolved = resolve(of(key), all);
        match description(of(key)) {
            "" => comment(out, description(resolved)),
            text => comment(out, text),
        }
        let _ = writeln!(out, "[{full}]");
        write_table(out, &full, inner, resolved, all);
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

/// Follows a reference into the schema's definitions.
fn resolve<'a>(schema: &'a Json, all: &'a Json) -> &'a Json {
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
