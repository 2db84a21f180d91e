//! Everything that is done with a manifest before its area serves, for fuzzing.

use std::sync::LazyLock;

use serde_json::{Value as Json, json};

use super::compatibility;
use super::contract::{ContractLimits, RouteContract, compile};
use super::decode;
use super::openapi::{OpenApiDocument, PublishedArea};
use assurance_core::domain::manifest::Manifest;

/// Changes to a manifest that one input may make.
const MOST_CHANGES: usize = 32;
/// Values that one input has checked.
const MOST_VALUES: usize = 8;

/// The manifest that inputs change, as JSON.
static SEED: LazyLock<Json> = LazyLock::new(|| {
    serde_json::from_str(include_str!("fuzzing/manifest.json")).expect("the seed is JSON")
});

/// Reads lines of JSON: a manifest, a change `{"at": POINTER, "put": VALUE}` of
/// it, or a value that requests send. Compiles, compares and publishes the
/// manifest. Returns the bytes of what is said about it.
///
/// # Panics
/// A manifest that is accepted differs from itself, or is not published.
#[must_use]
pub fn manifest(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok());
    let (mut manifest, mut values) =
        (MutatedManifest::new(), vec![Json::Null, json!({}), json!([[]])]);
    for line in lines.take(MOST_CHANGES) {
        match line {
            Json::Object(members) if members.contains_key("at") => manifest.change(&members),
            Json::Object(members) if members.contains_key("routes") => {
                manifest.replace(members.into());
            }
            value if values.len() < MOST_VALUES => values.push(value),
            _ => {}
        }
    }
    checked(&manifest.manifest, &values)
}

/// A manifest that is one after each change.
struct MutatedManifest {
    json: Json,
    manifest: Manifest,
}

impl MutatedManifest {
    fn new() -> Self {
        let manifest = serde_json::from_value(SEED.clone()).expect("the seed is a manifest");
        Self { json: SEED.clone(), manifest }
    }

    fn change(&mut self, change: &serde_json::Map<String, Json>) {
        let mut json = self.json.clone();
        let at = change.get("at").and_then(Json::as_str).and_then(|at| json.pointer_mut(at));
        let Some(target) = at else { return };
        *target = change.get("put").cloned().unwrap_or_default();
        self.replace(json);
    }

    fn replace(&mut self, json: Json) {
        if let Ok(manifest) = serde_json::from_value(json.clone()) {
            (self.json, self.manifest) = (json, manifest);
        }
    }
}

fn checked(manifest: &Manifest, values: &[Json]) -> usize {
    let events = ["notes.created".to_owned()];
    let routes = match compile(manifest, &events, &ContractLimits::default()) {
        Ok(routes) => routes,
        Err(refused) => return refused.to_string().len(),
    };
    let seed = MutatedManifest::new().manifest;
    let differences = [(&seed, manifest), (manifest, &seed)]
        .map(|(live, candidate)| compatibility::compare(live, candidate).differences);
    let told: usize = differences.iter().flatten().map(|one| one.to_string().len()).sum();
    let own = compatibility::compare(manifest, manifest);
    assert!(own.differences.is_empty(), "differs from itself: {}", own.differences[0]);
    let published = OpenApiDocument::of(
        &[],
        [PublishedArea { manifest, routes: &routes }].into_iter(),
        "https://api.example",
    );
    told + published.text.len() + routes.iter().map(|route| asked(route, values)).sum::<usize>()
}

/// What a route reports about values of its body and of its parameters.
fn asked(route: &RouteContract, values: &[Json]) -> usize {
    let mut told = 0;
    for value in values {
        if let Some(schema) = &route.body {
            let (named, _) = schema.violations(value, 100);
            told += named.iter().map(|one| one.pointer.len() + one.message.len()).sum::<usize>();
        }
        for parameter in &route.route.parameters {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            told += decode(&parameter.kind, &text).map_or_else(|why| why.len(), |read| read.len());
        }
    }
    told
}
