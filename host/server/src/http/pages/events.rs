//! Page of an event type: describes the webhook delivery of the event.

use maud::html;
use serde_json::Value as Json;

use super::layout;
use super::markdown::description;
use super::members::SchemaMemberReader;
use super::navigation::{Navigation, events};
use super::reference::text;
use super::tables::{members, parameters};

/// Renders the page of an event; `None` if no live area publishes the event.
pub(super) fn page(document: &Json, name: &str) -> Option<String> {
    let (_, event) = events(document).find(|(known, _)| *known == name)?;
    let schemas = SchemaMemberReader::new(document);
    let schema = &event["requestBody"]["content"]["application/json"]["schema"];
    let body = html! {
        p { (text(&event["summary"])) "." }
        (description(text(&event["description"])))
        p { a href="/guides/webhooks" { "How to receive and verify deliveries" } }
        h2 id="body" { "Body" }
        (members("body", schemas.members(schema)))
        (parameters(&schemas, event))
    };
    let navigation = Navigation::within(document, text(&event["tags"][0]), name);
    Some(layout::page(name, &navigation, &body))
}
