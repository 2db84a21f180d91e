//! What other areas would lose with an area: the documents and blobs that
//! they may read, and the events that run them.

use std::fmt;

use super::Snapshot;
use crate::domain::manifest::Manifest;

/// One area, or all, and what it would lose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dependent {
    /// Its name; `None`: every area.
    pub area: Option<String>,
    /// What it would lose.
    pub what: String,
}

impl fmt::Display for Dependent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let area = self.area.as_deref().unwrap_or("every area");
        write!(f, "{area} {}", self.what)
    }
}

impl Snapshot {
    /// Who depends on an area among the other live ones. An area that
    /// subscribes to every event depends on none in particular.
    #[must_use]
    pub fn dependents(&self, name: &str) -> Vec<Dependent> {
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

fn readers(area: &Manifest, others: &[&Manifest]) -> Vec<Dependent> {
    let collections = area.collections.iter();
    let shared = collections
        .map(|collection| (format!("its collection {}", collection.name), &collection.readers))
        .chain([("its blobs".to_owned(), &area.blob_readers)]);
    let mut found = Vec::new();
    for (what, readers) in shared {
        let what = format!("may read {what}");
        if readers.iter().any(|reader| reader == "*") {
            if !others.is_empty() {
                found.push(Dependent { area: None, what });
            }
            continue;
        }
        let live = others.iter().filter(|other| readers.contains(&other.name));
        found.extend(
            live.map(|other| Dependent { area: Some(other.name.clone()), what: what.clone() }),
        );
    }
    found
}

fn subscriber(area: &Manifest, other: &Manifest) -> Option<Dependent> {
    let published = area.publishes.iter().map(|event| event.name.as_str());
    let heard: Vec<&str> =
        published.filter(|event| other.subscriptions.iter().any(|name| name == event)).collect();
    let what = format!("subscribes to {}", heard.join(", "));
    (!heard.is_empty()).then(|| Dependent { area: Some(other.name.clone()), what })
}
