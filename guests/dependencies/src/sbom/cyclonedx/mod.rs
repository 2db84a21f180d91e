//! CycloneDX 1.2 to 1.7, JSON.

mod licenses;
mod model;
mod vulnerabilities;

use std::collections::BTreeSet;

use area_sdk::prelude::*;

use self::model::{Bom, ComponentItem, Tools};
use super::identity::{Named, bounded};
use super::{Component, Edges, Entry, Format, Graph, Sbom, Scope, Subject, collapse};
use crate::purl::Purl;
use crate::reading::{self, Mistake};

pub(super) fn read(bytes: &[u8]) -> Result<Sbom, Mistake> {
    let bom: Bom<'_> = reading::json(bytes)?;
    bom.check()?;
    let root = bom.metadata.component.as_deref();
    let mut items = Vec::new();
    // What a subject is assembled from is a component of it.
    flatten(root.into_iter().flat_map(|root| &root.components), &mut items);
    flatten(bom.components.iter(), &mut items);

    let mut warnings = Vec::new();
    let mut entries: Vec<Entry<'_>> = Vec::with_capacity(items.len());
    let unnamed = items.iter().filter(|item| item.name.trim().is_empty()).count();
    if unnamed > 0 {
        warnings.push(format!("{unnamed} components without a name were passed over."));
    }
    entries
        .extend(items.iter().filter(|item| !item.name.trim().is_empty()).map(|item| entry(item)));
    vulnerabilities::report(&bom, &mut entries, &mut warnings);

    let edges = edges(&bom);
    let (graph, direct) = graph(root, &edges);
    Ok(Sbom {
        format: Format::CycloneDx,
        spec_version: bom.spec_version.as_str().to_owned(),
        subject: root.and_then(subject),
        tool: tool(&bom.metadata.tools),
        created_at: bom.metadata.timestamp,
        graph,
        components: collapse(entries, &edges, &direct),
        warnings,
    })
}

/// Components and those inside them, in the file's order.
fn flatten<'b, 'a: 'b>(
    components: impl IntoIterator<Item = &'b ComponentItem<'a>>,
    into: &mut Vec<&'b ComponentItem<'a>>,
) {
    let mut waiting: Vec<&ComponentItem<'_>> = components.into_iter().collect();
    waiting.reverse();
    while let Some(item) = waiting.pop() {
        into.push(item);
        waiting.extend(item.components.iter().rev());
    }
}

fn entry<'b>(item: &'b ComponentItem<'_>) -> Entry<'b> {
    let reference = item.bom_ref.as_deref().or(item.purl.as_deref());
    let component = Component {
        reference: reference.map(bounded),
        // "If not specified, required should be assumed."
        scope: Some(item.scope.unwrap_or(Scope::Required)),
        ..item.named().component()
    };
    Entry { reference, component }
}

impl ComponentItem<'_> {
    fn named(&self) -> Named<'_> {
        Named {
            group: self.group.as_deref(),
            name: &self.name,
            version: self.version.as_deref(),
            purl: self.purl.as_deref(),
        }
    }
}

fn edges<'b>(bom: &'b Bom<'_>) -> Edges<'b> {
    let mut edges = Edges::new();
    for dependency in &bom.dependencies {
        let on = dependency.depends_on.iter().map(AsRef::as_ref);
        edges.entry(dependency.reference.as_ref()).or_default().extend(on);
    }
    edges
}

/// What the subject itself depends on, where the file tells.
fn graph<'b>(root: Option<&'b ComponentItem<'_>>, edges: &Edges<'b>) -> (Graph, BTreeSet<&'b str>) {
    if edges.is_empty() {
        return (Graph::Absent, BTreeSet::new());
    }
    let names = root.into_iter().flat_map(|root| [root.bom_ref.as_deref(), root.purl.as_deref()]);
    match names.flatten().find_map(|name| edges.get(name)) {
        Some(direct) => (Graph::Rooted, direct.clone()),
        None => (Graph::Rootless, BTreeSet::new()),
    }
}

fn subject(root: &ComponentItem<'_>) -> Option<Subject> {
    let purl = root.purl.as_deref().and_then(|purl| Purl::parse(purl).ok());
    let named = root.named().component();
    if named.name.trim().is_empty() {
        return None;
    }
    let key = purl.as_ref().map_or(named.name, |purl| purl.package().to_string());
    let versions =
        [purl.as_ref().and_then(|purl| purl.version.as_deref()), root.version.as_deref()];
    let version = versions.into_iter().flatten().find(|version| version.starts_with("sha256:"));
    let digest = version.map(str::to_lowercase).or_else(|| root.sha256());
    Some(Subject { key, digest })
}

fn tool(tools: &Tools<'_>) -> Option<String> {
    let first = match tools {
        Tools::Listed(tools) => tools.first(),
        Tools::Grouped { components, services } => components.first().or(services.first()),
    }?;
    let words = [first.name.as_deref(), first.version.as_deref()];
    let words: Vec<&str> = words.into_iter().flatten().filter(|word| !word.is_empty()).collect();
    (!words.is_empty()).then(|| bounded(&words.join(" ")))
}
