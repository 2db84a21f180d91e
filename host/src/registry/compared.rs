//! How the answers of a version on trial differ from the live one's: counted
//! by operation and place, with a few examples each.
//!
//! Operators may see where answers differ, not what is in them: values are
//! told by their type and by a digest under a key that is gone with the
//! process, unless the configuration has them shown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

/// Differences between two answers that are counted.
const MOST_OF_ONE: usize = 50;
/// Places that are told; further ones are only counted.
const MOST_PLACES: usize = 500;
/// Examples of one place.
const EXAMPLES: usize = 3;
/// Characters of a value that is shown.
const SHOWN: usize = 200;

/// What the comparisons have shown so far.
#[derive(Debug)]
pub struct Compared {
    kept: Mutex<Kept>,
    running: AtomicU32,
    /// Keeps digests of few possible values from being looked up.
    key: [u8; 16],
}

impl Default for Compared {
    fn default() -> Self {
        Self { kept: Mutex::default(), running: AtomicU32::new(0), key: rand::random() }
    }
}

#[derive(Debug, Default)]
struct Kept {
    counts: Counts,
    places: BTreeMap<(String, String), Place>,
}

/// How many copies there were, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// Compared.
    pub compared: u64,
    /// Of those, the ones that differ.
    pub different: u64,
    /// Those that differ and read what the live version had not, a moment
    /// later: whether they would differ in the same state is not known. They
    /// are not counted as different.
    pub uncertain: u64,
    /// Not run, since too many were running.
    pub dropped: u64,
    /// Run, and ended by the host or the database.
    pub failed: u64,
    /// Differences at places beyond those told.
    pub untold: u64,
}

#[derive(Clone, Debug, Default)]
struct Place {
    count: u64,
    examples: Vec<Example>,
}

/// One place at which answers differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "AnswerDifference")]
pub struct Difference {
    /// The operation.
    pub operation: String,
    /// A JSON Pointer into status, headers, body and effects; `*` stands for
    /// any index or document's id.
    pub pointer: String,
    /// How often.
    pub count: u64,
    /// The latest.
    pub examples: Vec<Example>,
}

/// Where it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Example {
    /// Of the live request.
    pub request_id: String,
    /// The exact place.
    pub pointer: String,
    /// What the live version answered there.
    pub live: String,
    /// What the version on trial did.
    pub candidate: String,
}

/// One copy that is run; the next has its place when it is dropped.
#[derive(Debug)]
pub struct Copying(Arc<Compared>);

impl Drop for Copying {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Compared {
    /// Begins a copy, unless so many are run already: what is dropped is
    /// counted.
    pub fn begin(self: &Arc<Self>, most: u32) -> Option<Copying> {
        let place = Copying(Arc::clone(self));
        if self.running.fetch_add(1, Ordering::AcqRel) < most {
            return Some(place);
        }
        self.kept.lock().counts.dropped += 1;
        None
    }

    /// A copy could not be run to its end.
    pub fn failed(&self) {
        self.kept.lock().counts.failed += 1;
    }

    /// Holds two answers to one request against each other.
    pub fn compare(&self, asked: &Asked<'_>, live: &Json, candidate: &Json) {
        let found = differences(live, candidate);
        let mut kept = self.kept.lock();
        kept.counts.compared += 1;
        if found.is_empty() {
            return;
        }
        if !asked.exact {
            kept.counts.uncertain += 1;
            return;
        }
        kept.counts.different += 1;
        for (pointer, live, candidate) in found {
            let told = |value| self.told(value, asked.shown);
            let example = Example {
                request_id: asked.request_id.to_owned(),
                live: told(live),
                candidate: told(candidate),
                pointer,
            };
            kept.keep(asked.operation, example);
        }
    }

    /// All of it, what differs most often first.
    #[must_use]
    pub fn told_all(&self) -> (Counts, Vec<Difference>) {
        let kept = self.kept.lock();
        let told = kept.places.iter().map(|((operation, pointer), place)| Difference {
            operation: operation.clone(),
            pointer: pointer.clone(),
            count: place.count,
            examples: place.examples.clone(),
        });
        let mut told: Vec<Difference> = told.collect();
        told.sort_by_key(|difference| std::cmp::Reverse(difference.count));
        (kept.counts, told)
    }

    fn told(&self, value: Option<&Json>, shown: bool) -> String {
        let Some(value) = value else { return "nothing".to_owned() };
        let text = value.to_string();
        if shown {
            return text.chars().take(SHOWN).collect();
        }
        let kind = match value {
            Json::Null => return "null".to_owned(),
            Json::Bool(_) => "boolean",
            Json::Number(_) => "number",
            Json::String(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        };
        let digest = Sha256::new_with_prefix(self.key).chain_update(&text).finalize();
        format!("{kind} {}", hex::encode(&digest[..4]))
    }
}

/// Of which request two answers are compared.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The live request's id.
    pub request_id: &'a str,
    /// Its operation.
    pub operation: &'a str,
    /// Both versions saw the same state.
    pub exact: bool,
    /// Examples show values.
    pub shown: bool,
}

impl Kept {
    fn keep(&mut self, operation: &str, example: Example) {
        let key = (operation.to_owned(), general(&example.pointer));
        if self.places.len() >= MOST_PLACES && !self.places.contains_key(&key) {
            self.counts.untold += 1;
            return;
        }
        let place = self.places.entry(key).or_default();
        place.count += 1;
        if place.examples.len() == EXAMPLES {
            place.examples.remove(0);
        }
        place.examples.push(example);
    }
}

/// A JSON Pointer, and what is there in either value.
type Found<'v> = (String, Option<&'v Json>, Option<&'v Json>);

/// Where two values differ, by JSON Pointer (RFC 6901): the first of them,
/// where there are many.
#[must_use]
pub fn differences<'v>(one: &'v Json, other: &'v Json) -> Vec<Found<'v>> {
    let mut found = Vec::new();
    walk(one, other, &mut String::new(), &mut found);
    found
}

fn walk<'v>(live: &'v Json, candidate: &'v Json, at: &mut String, found: &mut Vec<Found<'v>>) {
    if found.len() >= MOST_OF_ONE || live == candidate {
        return;
    }
    match (live, candidate) {
        (Json::Object(one), Json::Object(other)) => {
            let added = other.keys().filter(|name| !one.contains_key(*name));
            for name in one.keys().chain(added) {
                let name_in_pointer = name.replace('~', "~0").replace('/', "~1");
                step(&name_in_pointer, one.get(name), other.get(name), at, found);
            }
        }
        (Json::Array(one), Json::Array(other)) => {
            for index in 0..one.len().max(other.len()) {
                step(&index.to_string(), one.get(index), other.get(index), at, found);
            }
        }
        _ => found.push((at.clone(), Some(live), Some(candidate))),
    }
}

fn step<'v>(
    name: &str,
    live: Option<&'v Json>,
    candidate: Option<&'v Json>,
    at: &mut String,
    found: &mut Vec<Found<'v>>,
) {
    let length = at.len();
    at.push('/');
    at.push_str(name);
    match (live, candidate) {
        (Some(live), Some(candidate)) => walk(live, candidate, at, found),
        _ => found.push((at.clone(), live, candidate)),
    }
    at.truncate(length);
}

/// A pointer without indexes and documents' ids, under which the same
/// difference is counted.
fn general(pointer: &str) -> String {
    let document = pointer.starts_with("/effects/documents/");
    let steps = pointer.split('/').enumerate().map(|(depth, step)| {
        let index = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
        if index || (document && depth == 4) { "*" } else { step }
    });
    steps.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(exact: bool, shown: bool) -> Asked<'static> {
        Asked { request_id: "r-1", operation: "list_notes", exact, shown }
    }

    #[test]
    fn differences_are_counted_by_place_and_values_stay_hidden() {
        let compared = Compared::default();
        let live = json!({"status": "200", "body": {"items": [{"a/b": "secret"}, {"a/b": 2}]}});
        let mut other = live.clone();
        other["body"]["items"][0]["a/b"] = json!("hidden");
        other["body"]["items"][1] = json!({});
        compared.compare(&asked(true, false), &live, &other);
        compared.compare(&asked(true, false), &live, &live);
        let (counts, told) = compared.told_all();
        assert_eq!((counts.compared, counts.different), (2, 1));
        assert_eq!((told.len(), told[0].count), (1, 2));
        assert_eq!(told[0].pointer, "/body/items/*/a~1b");
        let [first, second] = &told[0].examples[..] else { panic!("{told:?}") };
        assert_eq!(
            (first.pointer.as_str(), first.request_id.as_str()),
            ("/body/items/0/a~1b", "r-1")
        );
        assert!(first.live.starts_with("string ") && first.live != first.candidate, "{first:?}");
        assert_eq!(second.candidate, "nothing");
        let text = format!("{told:?}");
        assert!(!text.contains("secret") && !text.contains("hidden"), "{text}");
    }

    #[test]
    fn the_same_change_of_many_documents_is_one_difference() {
        let compared = Compared::default();
        for id in ["x", "y"] {
            let left = |state: &str| json!({"effects": {"documents": {"a.notes": {id: state}}}});
            compared.compare(&asked(true, true), &left("open"), &left("closed"));
        }
        let (_, told) = compared.told_all();
        assert_eq!((told.len(), told[0].count), (1, 2));
        assert_eq!(told[0].pointer, "/effects/documents/a.notes/*");
        assert_eq!((told[0].examples[1].live.as_str(), told[0].examples.len()), ("\"open\"", 2));
    }

    #[test]
    fn what_may_have_changed_meanwhile_is_not_held_against_the_candidate() {
        let compared = Compared::default();
        compared.compare(&asked(false, false), &json!({"body": 1}), &json!({"body": 2}));
        let (counts, told) = compared.told_all();
        assert_eq!((counts.different, counts.uncertain, told.len()), (0, 1, 0));
    }

    #[test]
    fn copies_beyond_the_bound_are_dropped() {
        let compared = Arc::new(Compared::default());
        let first = compared.begin(1);
        assert!(first.is_some() && compared.begin(1).is_none());
        drop(first);
        assert!(compared.begin(1).is_some());
        assert_eq!(compared.told_all().0.dropped, 1);
    }
}
