//! Tables of parameters and body members; each row has an anchor.

use maud::{Markup, html};
use serde_json::Value as Json;

use super::markdown::description;
use super::members::{SchemaFieldRow, SchemaMemberReader, resolved};
use super::reference::text;

/// Renders the table of an operation's parameters.
pub(super) fn parameters(schemas: &SchemaMemberReader<'_>, described: &Json) -> Markup {
    let all = described["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows = all.iter().map(|parameter| {
        let parameter = resolved(schemas.document, parameter);
        SchemaFieldRow {
            path: text(&parameter["name"]).to_owned(),
            kind: format!(
                "{} parameter, {}",
                text(&parameter["in"]),
                schemas.kind(&parameter["schema"])
            ),
            required: parameter["required"] == true,
            default: schemas.default(&parameter["schema"]),
            description: text(&parameter["description"]).to_owned(),
        }
    });
    html! {
        @if !all.is_empty() {
            h2 id="parameters" { "Parameters" }
            (members("parameters", rows.collect()))
        }
    }
}

/// Renders the table of a request or response body's members. `place` is the
/// prefix of the anchors: for `response`, the anchor of `items[].id` is
/// `response.items.id`.
pub(super) fn members(place: &str, rows: Vec<SchemaFieldRow>) -> Markup {
    html! {
        @if !rows.is_empty() {
            table {
                thead { tr { th { "Name" } th { "Type" } th { "Description" } } }
                tbody { @for row in rows { (line(place, &row)) } }
            }
        }
    }
}

fn line(place: &str, row: &SchemaFieldRow) -> Markup {
    let anchor = format!("{place}.{}", row.path.replace("[]", ""));
    html! {
        tr id=(anchor) {
            th scope="row" { a href={ "#" (anchor) } { code { (row.path) } } }
            td class="kind" {
                (row.kind)
                @if !row.required { " · optional" }
                @if let Some(default) = &row.default { " · default " code { (default) } }
            }
            td { (description(&row.description)) }
        }
    }
}
