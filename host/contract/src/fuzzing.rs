//! Fuzz target: validates, compiles, compares and publishes a manifest, as the
//! host does before an area serves.

use std::sync::LazyLock;

use serde_json::{Value as Json, json};

use super::compatibility;
use super::contract::{CompiledRoute, ContractLimits, compile};
use super::decode;
use super::openapi::{OpenApiDocument, PublishedArea};
use assurance_core::domain::manifest::Manifest;

/// Maximum number of JSON lines that are read from one fuzz input.
const MOST_CHANGES: usize = 32;
/// Maximum number of values in one fuzz input that are validated as request
/// data.
const MOST_VALUES: usize = 8;

/// Manifest as JSON to which the changes in a fuzz input are applied.
static SEED: LazyLock<Json> = LazyLock::new(|| {
    serde_json::from_str(include_str!("fuzzing/manifest.json"))
        .expect("fuzzing/manifest.json is JSON")
});

/// Reads lines of JSON. A line is a whole manifest, a change `{"at": POINTER,
/// "put": VALUE}` of the current one, or a value to validate as request data.
/// Compiles, compares and publishes the manifest. Returns the total length of
/// all messages and of the document, in bytes.
///
/// # Panics
/// A valid manifest is reported as incompatible with itself.
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

/// The fuzzed manifest, as JSON and parsed. Changes that make it unparsable are
/// ignored.
struct MutatedManifest {
    json: Json,
    manifest: Manifest,
}

impl MutatedManifest {
    fn new() -> Self {
        let manifest =
            serde_json::from_value(SEED.clone()).expect("fuzzing/manifest.json is a manifest");
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

/// Validates the values as the route's body and parameters. Returns the total
/// length of the messages and parsed values, in bytes.
fn asked(route: &CompiledRoute, values: &[Json]) -> usize {
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
