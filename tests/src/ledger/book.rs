//! What was sent and what came of it. Every request carries a marker, a word
//! that is nowhere else, so that a document shows which request made it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::mix::{Change, Creation, Deletion};

/// Hexadecimal digits of a marker after [`PREFIX`] and the run.
const DIGITS: usize = 10;
const PREFIX: &str = "1ed6e";

/// Names one request. Its text is hexadecimal, so that it fits members that
/// take digests only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Marker(u64);

/// What a request does if it is acknowledged.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A new document with this content, among other things.
    Creates(&'static Creation, Map<String, Value>),
    /// The next version of this document, with this content.
    Changes(&'static Change, String, Map<String, Value>),
    /// The end of this document.
    Deletes(&'static Deletion, String),
    /// Nothing that can be looked up.
    Acts,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No response, or one that leaves it open (5xx).
    Unknown,
    /// A 4xx.
    Refused(u16),
    /// A 2xx, with the document's id and the version of the `ETag`.
    Acknowledged(String, Option<u64>),
}

/// One request.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The operation's id.
    pub operation: &'static str,
    /// The workspace of the request, without dashes.
    pub workspace: String,
    /// What it does.
    pub effect: Effect,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether it has ended.
    pub closed: bool,
}

/// All requests of a run.
#[derive(Debug)]
pub struct Book {
    run: u32,
    next: AtomicU64,
    begun: Instant,
    pages: Mutex<Pages>,
}

/// What is under the book's lock.
#[derive(Debug, Default)]
pub struct Pages {
    /// Requests since the last check.
    pub entries: HashMap<Marker, Entry>,
    /// Responses by operation and status; 0: none.
    pub statuses: BTreeMap<(&'static str, u16), u64>,
    /// What was wrong with a response itself.
    pub objections: Vec<String>,
    /// Seconds into the run of each 5xx or missing response, by status.
    pub failures: Vec<(f64, &'static str, u16)>,
    /// Retries that got the response of the first attempt.
    pub replays: u64,
}

impl Book {
    /// An empty book; runs with other numbers do not see each other's markers.
    #[must_use]
    pub fn new(run: u32) -> Self {
        let pages = Mutex::default();
        Self { run: run & 0xf_ffff, next: AtomicU64::new(1), begun: Instant::now(), pages }
    }

    /// A marker that was not given out before.
    pub fn marker(&self) -> Marker {
        Marker(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// A marker as it is sent.
    #[must_use]
    pub fn text(&self, marker: Marker) -> String {
        format!("{PREFIX}{:05x}{:010x}", self.run, marker.0)
    }

    /// The markers of this run in a text, in order.
    #[must_use]
    pub fn markers(&self, text: &str) -> Vec<Marker> {
        let prefix = format!("{PREFIX}{:05x}", self.run);
        let after = text.match_indices(&prefix).filter_map(|(at, _)| {
            let digits = text.get(at + prefix.len()..at + prefix.len() + DIGITS)?;
            u64::from_str_radix(digits, 16).ok().map(Marker)
        });
        after.collect()
    }

    /// Whether a marker was given out.
    #[must_use]
    pub fn knows(&self, marker: Marker) -> bool {
        (1..self.next.load(Ordering::Relaxed)).contains(&marker.0)
    }

    /// Enters a request before it is sent.
    pub fn open(&self, marker: Marker, operation: &'static str, workspace: &str, effect: Effect) {
        let workspace = workspace.replace('-', "");
        let outcome = Outcome::Unknown;
        let entry = Entry { operation, workspace, effect, outcome, closed: false };
        self.pages.lock().entries.insert(marker, entry);
    }

    /// Enters how a request ended.
    pub fn close(&self, marker: Marker, outcome: Outcome) {
        if let Some(entry) = self.pages.lock().entries.get_mut(&marker) {
            entry.outcome = outcome;
            entry.closed = true;
        }
    }

    /// Counts a response; 0 stands for none.
    pub fn count(&self, operation: &'static str, status: u16) {
        let mut pages = self.pages.lock();
        *pages.statuses.entry((operation, status)).or_default() += 1;
        if status == 0 || status >= 500 {
            pages.failures.push((self.begun.elapsed().as_secs_f64(), operation, status));
        }
    }

    /// Notes a response that is wrong by itself.
    pub fn object(&self, what: String) {
        self.pages.lock().objections.push(what);
    }

    /// Looks at or changes the pages.
    pub fn with<T>(&self, look: impl FnOnce(&mut Pages) -> T) -> T {
        look(&mut self.pages.lock())
    }

    /// Takes the requests that have ended; those under way stay.
    #[must_use]
    pub fn take(&self) -> HashMap<Marker, Entry> {
        let mut pages = self.pages.lock();
        pages.entries.extract_if(|_, entry| entry.closed).collect()
    }
}
