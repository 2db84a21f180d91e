//! Navigation of a page, created from the OpenAPI document.

use serde_json::Value as Json;

use super::reference::operations;

/// Links in the navigation of a page.
#[derive(Debug, Default)]
pub(super) struct Navigation {
    /// Names of all areas, and of the host's groups of operations.
    pub(super) areas: Vec<String>,
    /// Area that the page belongs to; `None` if it belongs to none.
    pub(super) area: Option<String>,
    /// Names and titles of the operations and events of the area that the page
    /// belongs to.
    pub(super) pages: Vec<(String, String)>,
    /// Path of the page itself.
    pub(super) current: String,
}

impl Navigation {
    /// Returns the navigation of a page that belongs to no area.
    pub(super) fn new(document: &Json, current: &str) -> Self {
        let tags = document["tags"].as_array().into_iter().flatten();
        let areas = tags.filter_map(|tag| tag["name"].as_str()).map(str::to_owned);
        Self { areas: areas.collect(), current: current.to_owned(), ..Self::default() }
    }

    /// Returns the navigation of the page of an operation or event.
    pub(super) fn within(document: &Json, area: &str, name: &str) -> Self {
        let of_area = operations(document).filter(|one| one.described["tags"][0] == area);
        let page = |name: &str, described: &Json| {
            let title = described["summary"].as_str().unwrap_or(name);
            (name.to_owned(), title.to_owned())
        };
        let operations = of_area.map(|one| page(one.name(), one.described));
        let events = events(document).filter(|(_, event)| event["tags"][0] == area);
        let events = events.map(|(name, _)| (name.to_owned(), name.to_owned()));
        Self {
            area: Some(area.to_owned()),
            pages: operations.chain(events).collect(),
            ..Self::new(document, &format!("/reference/{name}"))
        }
    }
}

/// Returns the name and the operation object of every event.
pub(super) fn events(document: &Json) -> impl Iterator<Item = (&str, &Json)> {
    let webhooks = document["webhooks"].as_object().into_iter().flatten();
    webhooks.map(|(name, methods)| (name.as_str(), &methods["post"]))
}
