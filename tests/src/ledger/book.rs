//! Requests of a run and their outcomes. Every request has a marker, a unique word, so that a
//! document shows which request created it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::mix::{Change, Creation, Deletion};

/// Number of hexadecimal digits of a marker after [`PREFIX`] and the run's number.
const DIGITS: usize = 10;
const PREFIX: &str = "1ed6e";

/// Unique word of a request. Its text is hexadecimal, so that members that only accept digests
/// accept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Marker(u64);

/// Effect of a request if it is acknowledged.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A new document that contains these members.
    Creates(&'static Creation, Map<String, Value>),
    /// The next version of this document, with these members.
    Changes(&'static Change, String, Map<String, Value>),
    /// The deletion of this document.
    Deletes(&'static Deletion, String),
    /// An effect that cannot be verified.
    Acts,
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No response, or a 5xx.
    Unknown,
    /// A 4xx response.
    Refused(u16),
    /// A 2xx response, with the document's id and the version of the `ETag`.
    Acknowledged(String, Option<u64>),
}

/// One request.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Operation id.
    pub operation: &'static str,
    /// Workspace of the request, without dashes.
    pub workspace: String,
    /// Effect of the request.
    pub effect: Effect,
    /// Outcome of the request.
    pub outcome: Outcome,
    /// Whether it has ended.
    pub closed: bool,
}

/// All requests of a run.
#[derive(Debug)]
pub struct RequestLog {
    run: u32,
    next: AtomicU64,
    begun: Instant,
    pages: Mutex<RequestLogState>,
}

/// Content of the book, under its lock.
#[derive(Debug, Default)]
pub struct RequestLogState {
    /// Requests since the last check.
    pub entries: HashMap<Marker, Entry>,
    /// Number of responses by operation and status; 0 means no response.
    pub statuses: BTreeMap<(&'static str, u16), u64>,
    /// Errors in responses.
    pub objections: Vec<String>,
    /// Seconds since the start of the run for each 5xx or missing response, with operation and
    /// status.
    pub failures: Vec<(f64, &'static str, u16)>,
    /// Number of retries that returned the response to the first attempt.
    pub replays: u64,
}

impl RequestLog {
    /// Creates an empty book. Runs with different numbers ignore each other's markers.
    #[must_use]
    pub fn new(run: u32) -> Self {
        let pages = Mutex::default();
        Self { run: run & 0xf_ffff, next: AtomicU64::new(1), begun: Instant::now(), pages }
    }

    /// Returns a new marker.
    pub fn marker(&self) -> Marker {
        Marker(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the text of a marker in requests.
    #[must_use]
    pub fn text(&self, marker: Marker) -> String {
        format!("{PREFIX}{:05x}{:010x}", self.run, marker.0)
    }

    /// Returns the markers of this run in a text, in order.
    #[must_use]
    pub fn markers(&self, text: &str) -> Vec<Marker> {
        let prefix = format!("{PREFIX}{:05x}", self.run);
        let after = text.match_indices(&prefix).filter_map(|(at, _)| {
            let digits = text.get(at + prefix.len()..at + prefix.len() + DIGITS)?;
            u64::from_str_radix(digits, 16).ok().map(Marker)
        });
        after.collect()
    }

    /// Whether a marker was used.
    #[must_use]
    pub fn knows(&self, marker: Marker) -> bool {
        (1..self.next.load(Ordering::Relaxed)).contains(&marker.0)
    }

    /// Adds a request before it is sent.
    pub fn open(&self, marker: Marker, operation: &'static str, workspace: &str, effect: Effect) {
        let workspace = workspace.replace('-', "");
        let outcome = Outcome::Unknown;
        let entry = Entry { operation, workspace, effect, outcome, closed: false };
        self.pages.lock().entries.insert(marker, entry);
    }

    /// Stores the outcome of a request.
    pub fn close(&self, marker: Marker, outcome: Outcome) {
        if let Some(entry) = self.pages.lock().entries.get_mut(&marker) {
            entry.outcome = outcome;
            entry.closed = true;
        }
    }

    /// Counts a response; 0 means none.
    pub fn count(&self, operation: &'static str, status: u16) {
        let mut pages = self.pages.lock();
        *pages.statuses.entry((operation, status)).or_default() += 1;
        if status == 0 || status >= 500 {
            pages.failures.push((self.begun.elapsed().as_secs_f64(), operation, status));
        }
    }

    /// Records an error in a response.
    pub fn object(&self, what: String) {
        self.pages.lock().objections.push(what);
    }

    /// Reads or changes the content.
    pub fn with<T>(&self, look: impl FnOnce(&mut RequestLogState) -> T) -> T {
        look(&mut self.pages.lock())
    }

    /// Removes and returns the requests that have ended.
    #[must_use]
    pub fn take(&self) -> HashMap<Marker, Entry> {
        let mut pages = self.pages.lock();
        pages.entries.extract_if(|_, entry| entry.closed).collect()
    }
}
