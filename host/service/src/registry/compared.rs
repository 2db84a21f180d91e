//! Compares the responses of a shadow version with those of the live version. Counts differences by
//! operation and position, with a few examples each.
//!
//! By default, operators see where responses differ, but not the values: values appear as their
//! type and a keyed digest. The key exists only in this process. `areas.shadow.show_values` shows
//! the values.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

/// Maximum number of differences between the two responses to one request that are counted.
const MAX_DIFFERENCES: usize = 50;
/// Maximum number of positions in responses whose differences are stored; differences at other
/// positions are only counted.
const MAX_POSITIONS: usize = 500;
/// Maximum number of example requests stored for one position.
const EXAMPLES: usize = 3;
/// Maximum length of a response value that an example shows, in characters.
const MAX_SHOWN_CHARS: usize = 200;

/// Collected results of comparing a shadow version's responses with the live version's.
#[derive(Debug)]
pub struct ShadowComparisonCollector {
    kept: Mutex<ComparisonTotals>,
    running: AtomicU32,
    /// Key of the digests that stand for values in examples. Without it, a digest of a value with
    /// few possibilities could be reversed.
    key: [u8; 16],
}

impl Default for ShadowComparisonCollector {
    fn default() -> Self {
        Self { kept: Mutex::default(), running: AtomicU32::new(0), key: rand::random() }
    }
}

#[derive(Debug, Default)]
struct ComparisonTotals {
    counts: ShadowCounts,
    /// Differences by operation and position.
    differences: BTreeMap<(String, String), ResponseDifference>,
}

/// Number of copied requests, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ShadowCounts {
    /// Number of compared requests.
    pub compared: u64,
    /// Compared requests that differ.
    pub different: u64,
    /// Compared requests that differ, but read data that the live version did not read. The state
    /// may have changed in between, so they do not count as different.
    pub uncertain: u64,
    /// Copies that were not run because too many were running.
    pub dropped: u64,
    /// Copies that the host or the database ended.
    pub failed: u64,
    /// Differences at positions that are not stored.
    pub not_stored: u64,
}

/// A position at which responses differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "AnswerDifference")]
pub struct ResponseDifference {
    /// Operation id.
    pub operation: String,
    /// JSON Pointer into status, headers, body and effects; `*` stands for any array index or
    /// document id.
    pub pointer: String,
    /// Number of differences at this position.
    pub count: u64,
    /// The latest examples.
    pub examples: Vec<DifferenceExample>,
}

/// One request whose responses differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DifferenceExample {
    /// Id of the live request.
    pub request_id: String,
    /// Exact JSON Pointer of the difference.
    pub pointer: String,
    /// Value in the live version's response.
    pub live: String,
    /// Value in the shadow version's response.
    pub candidate: String,
}

/// Permission to execute one copy of a request on the shadow version. Dropping it makes room for
/// another copy.
#[derive(Debug)]
pub struct ShadowPermit(Arc<ShadowComparisonCollector>);

impl Drop for ShadowPermit {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ShadowComparisonCollector {
    /// Returns the permit to execute a copy of a request, or counts a dropped copy if `most` copies
    /// are running.
    pub fn begin(self: &Arc<Self>, most: u32) -> Option<ShadowPermit> {
        let place = ShadowPermit(Arc::clone(self));
        if self.running.fetch_add(1, Ordering::AcqRel) < most {
            return Some(place);
        }
        self.kept.lock().counts.dropped += 1;
        None
    }

    /// Counts a copied request that the host or the database ended.
    pub fn failed(&self) {
        self.kept.lock().counts.failed += 1;
    }

    /// Compares the live version's and the shadow version's response to one request and counts the
    /// differences.
    pub fn compare(&self, request: &ComparedRequest<'_>, live: &Json, candidate: &Json) {
        let found = differences(live, candidate);
        let mut kept = self.kept.lock();
        kept.counts.compared += 1;
        if found.is_empty() {
            return;
        }
        if !request.exact {
            kept.counts.uncertain += 1;
            return;
        }
        kept.counts.different += 1;
        for (pointer, live, candidate) in found {
            let shown = |value| self.shown_value(value, request.shown);
            let example = DifferenceExample {
                request_id: request.request_id.to_owned(),
                live: shown(live),
                candidate: shown(candidate),
                pointer,
            };
            kept.keep(request.operation, example);
        }
    }

    /// Returns the numbers of copied requests, and the positions at which responses differ, most
    /// frequent first.
    #[must_use]
    pub fn report(&self) -> (ShadowCounts, Vec<ResponseDifference>) {
        let kept = self.kept.lock();
        let mut told: Vec<ResponseDifference> = kept.differences.values().cloned().collect();
        told.sort_by_key(|difference| std::cmp::Reverse(difference.count));
        (kept.counts, told)
    }

    fn shown_value(&self, value: Option<&Json>, shown: bool) -> String {
        let Some(value) = value else { return "nothing".to_owned() };
        let text = value.to_string();
        if shown {
            return text.chars().take(MAX_SHOWN_CHARS).collect();
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

/// A request whose responses of the live and the shadow version are compared.
#[derive(Clone, Copy, Debug)]
pub struct ComparedRequest<'a> {
    /// Id of the live request.
    pub request_id: &'a str,
    /// Operation id of the request.
    pub operation: &'a str,
    /// Whether both versions read the same state of the data.
    pub exact: bool,
    /// Whether examples show the values in responses instead of digests.
    pub shown: bool,
}

impl ComparisonTotals {
    fn keep(&mut self, operation: &str, example: DifferenceExample) {
        let key = (operation.to_owned(), general(&example.pointer));
        if self.differences.len() >= MAX_POSITIONS && !self.differences.contains_key(&key) {
            self.counts.not_stored += 1;
            return;
        }
        let (operation, pointer) = key.clone();
        let new = ResponseDifference { operation, pointer, count: 0, examples: Vec::new() };
        let difference = self.differences.entry(key).or_insert(new);
        difference.count += 1;
        if difference.examples.len() == EXAMPLES {
            difference.examples.remove(0);
        }
        difference.examples.push(example);
    }
}

/// A position at which two JSON values differ: JSON Pointer, live value and candidate's value;
/// `None` for an absent value.
type DifferentValues<'v> = (String, Option<&'v Json>, Option<&'v Json>);

/// Returns the positions at which two JSON values differ, by JSON Pointer (RFC 6901). Returns at
/// most the first 50.
#[must_use]
pub fn differences<'v>(one: &'v Json, other: &'v Json) -> Vec<DifferentValues<'v>> {
    let mut found = Vec::new();
    walk(one, other, &mut String::new(), &mut found);
    found
}

fn walk<'v>(
    live: &'v Json,
    candidate: &'v Json,
    at: &mut String,
    found: &mut Vec<DifferentValues<'v>>,
) {
    if found.len() >= MAX_DIFFERENCES || live == candidate {
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
    found: &mut Vec<DifferentValues<'v>>,
) {
    let length = at.len();
    at.push('/');
    at.push_str(name);
    match (live, candidate) {
        (Some(live), Some(candidate)) => walk(live, candidate, at, found),
        _ if found.len() >= MAX_DIFFERENCES => {}
        _ => found.push((at.clone(), live, candidate)),
    }
    at.truncate(length);
}

/// Replaces array indexes and document ids in a JSON Pointer by `*`.
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

    fn request(exact: bool, shown: bool) -> ComparedRequest<'static> {
        ComparedRequest { request_id: "r-1", operation: "list_notes", exact, shown }
    }

    #[test]
    fn differences_are_counted_by_place_and_values_stay_hidden() {
        let compared = ShadowComparisonCollector::default();
        let live = json!({"status": "200", "body": {"items": [{"a/b": "secret"}, {"a/b": 2}]}});
        let mut other = live.clone();
        other["body"]["items"][0]["a/b"] = json!("hidden");
        other["body"]["items"][1] = json!({});
        compared.compare(&request(true, false), &live, &other);
        compared.compare(&request(true, false), &live, &live);
        let (counts, told) = compared.report();
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
    fn differences_beyond_the_bound_are_not_kept() {
        let members: serde_json::Map<String, Json> =
            (0..60).map(|number| (number.to_string(), json!(number))).collect();
        let all = Json::from(members);
        assert_eq!(differences(&all, &json!({})).len(), MAX_DIFFERENCES);
        assert_eq!(differences(&json!({}), &all).len(), MAX_DIFFERENCES);
    }

    #[test]
    fn the_same_change_of_many_documents_is_one_difference() {
        let compared = ShadowComparisonCollector::default();
        for id in ["x", "y"] {
            let left = |state: &str| json!({"effects": {"documents": {"a.notes": {id: state}}}});
            compared.compare(&request(true, true), &left("open"), &left("closed"));
        }
        let (_, told) = compared.report();
        assert_eq!((told.len(), told[0].count), (1, 2));
        assert_eq!(told[0].pointer, "/effects/documents/a.notes/*");
        assert_eq!((told[0].examples[1].live.as_str(), told[0].examples.len()), ("\"open\"", 2));
    }

    #[test]
    fn what_may_have_changed_meanwhile_is_not_held_against_the_candidate() {
        let compared = ShadowComparisonCollector::default();
        compared.compare(&request(false, false), &json!({"body": 1}), &json!({"body": 2}));
        let (counts, told) = compared.report();
        assert_eq!((counts.different, counts.uncertain, told.len()), (0, 1, 0));
    }

    #[test]
    fn copies_beyond_the_bound_are_dropped() {
        let compared = Arc::new(ShadowComparisonCollector::default());
        let first = compared.begin(1);
        assert!(first.is_some() && compared.begin(1).is_none());
        drop(first);
        assert!(compared.begin(1).is_some());
        assert_eq!(compared.report().0.dropped, 1);
    }
}
