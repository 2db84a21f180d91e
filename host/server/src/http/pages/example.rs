//! Example request of an operation: a `curl` command with all required
//! parameters and headers. Values that the reader must provide are shell
//! variables.

use std::fmt::Write as _;

use maud::{Markup, html};
use serde_json::{Value as Json, json};

use super::members::{SchemaMemberReader, required_members, resolved};
use super::reference::DocumentedOperation;

/// Maximum nesting depth of an example. Deeper schemas are shown empty, because
/// a schema may contain itself.
const MAX_DEPTH: usize = 5;

/// Units that each value of an example takes from the page's size limit
/// (`PAGE_UNITS`). The text of a default, constant or enum value is charged in
/// addition.
const SAMPLE_UNITS: usize = 64;

/// Returns an operation's example request as a `curl` command over several
/// lines.
pub(super) fn curl(
    schemas: &SchemaMemberReader<'_>,
    operation: &DocumentedOperation<'_>,
) -> String {
    let document = schemas.document;
    let mut command = String::from("curl -sS");
    let demands = |scheme: &str| {
        let schemes = operation.described["security"].as_array().into_iter().flatten();
        schemes.into_iter().any(|needed| needed.get(scheme).is_some())
    };
    if demands("session") {
        command.push_str(" -b \"$COOKIE\"");
    }
    if demands("csrf") {
        command.push_str(" -H \"X-CSRF-Token: $CSRF_TOKEN\"");
    }
    for name in required(document, operation, "header") {
        let _ = write!(command, " -H \"{name}: ${}\"", variable(name));
    }
    command.push_str(&body(schemas, operation));
    let _ = write!(command, " \\\n  \"{}\"", url(document, operation));
    command
}

/// Renders a recorded JSON body; renders nothing for `null`.
pub(super) fn json_block(example: &Json) -> Markup {
    let text = serde_json::to_string_pretty(example).unwrap_or_default();
    html! {
        @if !example.is_null() { pre tabindex="0" { code { (text) } } }
    }
}

/// Returns the names of the required parameters in `path`, `query` or `header`.
fn required<'a>(
    document: &'a Json,
    operation: &DocumentedOperation<'a>,
    place: &'static str,
) -> impl Iterator<Item = &'a str> {
    let all = operation.described["parameters"].as_array().into_iter().flatten();
    let all = all.map(|parameter| resolved(document, parameter));
    let wanted = all.filter(move |one| one["in"] == place && one["required"] == true);
    wanted.filter_map(|parameter| parameter["name"].as_str())
}

fn url(document: &Json, operation: &DocumentedOperation<'_>) -> String {
    let server = document["servers"][0]["url"].as_str().unwrap_or_default();
    let mut url = format!("{server}{}", operation.path);
    for name in required(document, operation, "path") {
        url = url.replace(&format!("{{{name}}}"), &format!("${}", variable(name)));
    }
    let mut before = '?';
    for name in required(document, operation, "query") {
        let _ = write!(url, "{before}{name}=${}", variable(name));
        before = '&';
    }
    url
}

/// Returns the name of a parameter's shell variable: `FINDING_ID` for
/// `finding_id`.
fn variable(name: &str) -> String {
    name.replace('-', "_").to_ascii_uppercase()
}

/// Returns the method and the body as `curl` options. The method is omitted if
/// it is curl's default: GET without a body, POST with one.
fn body(schemas: &SchemaMemberReader<'_>, operation: &DocumentedOperation<'_>) -> String {
    let method = operation.method.as_str();
    let content = &operation.described["requestBody"]["content"];
    if let Some(media) = content.get("application/json") {
        let recorded = media.get("example").cloned();
        let value = recorded.unwrap_or_else(|| sample(schemas, &media["schema"], "", 0));
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        let sample = text.replace('\'', r"'\''");
        let method = if method == "POST" { String::new() } else { format!(" -X {method}") };
        return format!("{method} \\\n  --json '{sample}'");
    }
    if let Some(media) = content.get("multipart/form-data") {
        let parts = required_members(resolved(schemas.document, &media["schema"]));
        return parts.fold(String::new(), |mut all, (name, part)| {
            let file = if part["format"] == "binary" { "@" } else { "" };
            let _ = write!(all, " -F \"{name}={file}${}\"", variable(name));
            all
        });
    }
    match (method, content.is_object()) {
        ("GET", _) => String::new(),
        ("PUT", true) => " -T \"$FILE\"".to_owned(),
        (_, true) => format!(" -X {method} --data-binary \"@$FILE\""),
        (_, false) => format!(" -X {method}"),
    }
}

/// Returns an example value of the schema with only the required members.
/// Ignores `pattern`.
fn sample(schemas: &SchemaMemberReader<'_>, schema: &Json, name: &str, depth: usize) -> Json {
    let schema = resolved(schemas.document, schema);
    if depth > MAX_DEPTH || !schemas.spend(SAMPLE_UNITS) {
        return Json::Null;
    }
    let given = schema.get("default").or(schema.get("const")).or(schema["enum"].get(0));
    if let Some(given) = given {
        return if schemas.spend(given.to_string().len()) { given.clone() } else { Json::Null };
    }
    if let Some(first) = schema["oneOf"].get(0).or(schema["anyOf"].get(0)) {
        return sample(schemas, first, name, depth + 1);
    }
    let kind = schema["type"].as_str().or(schema["type"][0].as_str());
    match kind {
        Some("object") if depth < MAX_DEPTH => {
            let members = required_members(schema).take_while(|_| !schemas.is_exhausted());
            members
                .map(|(name, one)| (name.clone(), sample(schemas, one, name, depth + 1)))
                .collect()
        }
        Some("object") => json!({}),
        Some("array") if depth < MAX_DEPTH => {
            json!([sample(schemas, &schema["items"], name, depth + 1)])
        }
        Some("array") => json!([]),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("string") => text(schema, name).into(),
        _ => Json::Null,
    }
}

fn text(schema: &Json, name: &str) -> String {
    match schema["format"].as_str() {
        Some("uuid") => "01890a5d-ac96-774b-bcce-b302099a8057".to_owned(),
        Some("date-time") => "2030-01-31T12:00:00Z".to_owned(),
        Some("date") => "2030-01-31".to_owned(),
        Some("email") => "person@example.com".to_owned(),
        Some("uri") => "https://example.com".to_owned(),
        _ => name.replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_everything_that_is_demanded_and_nothing_else() {
        let document = json!({"servers": [{"url": "https://api.example.com"}]});
        let described = json!({
            "security": [{"session": [], "csrf": []}],
            "parameters": [
                {"name": "workspace_id", "in": "path", "required": true},
                {"name": "Idempotency-Key", "in": "header", "required": true},
                {"name": "limit", "in": "query", "required": false},
            ],
            "requestBody": {"content": {"application/json": {"schema": {
                "type": "object",
                "required": ["subject", "kind"],
                "properties": {
                    "subject": {"type": "string"},
                    "kind": {"oneOf": [{"const": "it's"}]},
                    "note": {"type": "string"},
                },
            }}}},
        });
        let path = "/v1/workspaces/{workspace_id}/notes";
        let operation = DocumentedOperation { method: "POST".into(), path, described: &described };
        insta::assert_snapshot!(curl(&SchemaMemberReader::new(&document), &operation), @r#"
        curl -sS -b "$COOKIE" -H "X-CSRF-Token: $CSRF_TOKEN" -H "Idempotency-Key: $IDEMPOTENCY_KEY" \
          --json '{
          "kind": "it'\''s",
          "subject": "subject"
        }' \
          "https://api.example.com/v1/workspaces/$WORKSPACE_ID/notes"
        "#);
    }
}
