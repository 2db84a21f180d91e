//! Finds areas that depend on another area: on its documents, its blobs or its events.

use std::fmt;

use super::Snapshot;
use assurance_core::domain::manifest::Manifest;

/// An area that would lose access to another area's data or events, and what it would lose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostDependency {
    /// Name of the dependent area; `None` means every area.
    pub area: Option<String>,
    /// Access that the dependent area would lose, as text for a message.
    pub what: String,
}

impl fmt::Display for LostDependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let area = self.area.as_deref().unwrap_or("every area");
        write!(f, "{area} {}", self.what)
    }
}

impl Snapshot {
    /// Returns what live areas would lose if this area were removed. An area that subscribes to all
    /// events does not depend on a particular one.
    #[must_use]
    pub fn dependents(&self, name: &str) -> Vec<LostDependency> {
        let Some(area) = self.area(name) else { return Vec::new() };
        let others: Vec<&Manifest> = self
            .areas()
            .map(|other| other.manifest.as_ref())
            .filter(|other| other.name != name)
            .collect();
        let mut found = readers(&area.manifest, &others);
        found.extend(others.iter().filter_map(|other| subscriber(&area.manifest, other)));
        found
    }
}

fn readers(area: &Manifest, others: &[&Manifest]) -> Vec<LostDependency> {
    let collections = area.collections.iter();
    let shared = collections
        .map(|collection| (format!("its collection {}", collection.name), &collection.readers))
        .chain([("its blobs".to_owned(), &area.blob_readers)]);
    let mut found = Vec::new();
    for (what, readers) in shared {
        let what = format!("may read {what}");
        if readers.iter().any(|reader| reader == "*") {
            if !others.is_empty() {
                found.push(LostDependency { area: None, what });
            }
            continue;
        }
        let live = others.iter().filter(|other| readers.contains(&other.name));
        found.extend(
            live.map(|other| LostDependency { area: Some(other.name.clone()), what: what.clone() }),
        );
    }
    found
}

fn subscriber(area: &Manifest, other: &Manifest) -> Option<LostDependency> {
    let published = area.publishes.iter().map(|event| event.name.as_str());
    let heard: Vec<&str> =
        published.filter(|event| other.subscriptions.iter().any(|name| name == event)).collect();
    let what = format!("subscribes to {}", heard.join(", "));
    (!heard.is_empty()).then(|| LostDependency { area: Some(other.name.clone()), what })
}
