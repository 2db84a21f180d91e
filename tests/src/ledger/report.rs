//! Result of a load.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use super::book::RequestLog;
use super::check::{History, Versions};
use super::database::StoredDocument;

/// Number of printed defects of each kind.
const SHOWN: usize = 5;

/// Counts and defects of a load.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of 2xx responses.
    pub acknowledged: u64,
    /// Number of 4xx responses.
    pub refused: u64,
    /// Number of requests with an unknown outcome.
    pub unknown: u64,
    /// Number of retries that returned the response to the first attempt.
    pub replays: u64,
    /// Number of documents that were also read over HTTP.
    pub read: u64,
    /// Acknowledged requests that are not stored.
    pub lost: Vec<String>,
    /// Requests that had two effects.
    pub doubled: Vec<String>,
    /// Data in a workspace other than that of its request.
    pub foreign: Vec<String>,
    /// Refused requests that are stored.
    pub refused_but_there: Vec<String>,
    /// Documents with other content or another version than acknowledged.
    pub altered: Vec<String>,
    /// Events without a document, and documents without an event.
    pub unmatched_events: Vec<String>,
    /// Errors in responses.
    pub objections: Vec<String>,
    /// Audits and uploads that did not end.
    pub unfinished: Vec<String>,
    /// Jobs that failed for good; not a defect.
    pub given_up: Vec<String>,
    /// Number of responses by operation and status; 0 means no response.
    pub statuses: BTreeMap<(&'static str, u16), u64>,
    /// Time for which requests were sent.
    pub load: Duration,
    /// Number of kills of a node.
    pub kills: u32,
}

impl Report {
    /// Returns the number of responses by status; 0 means no response.
    #[must_use]
    pub fn by_status(&self) -> BTreeMap<u16, u64> {
        let mut counts = BTreeMap::new();
        for ((_, status), count) in &self.statuses {
            *counts.entry(*status).or_default() += count;
        }
        counts
    }

    /// Returns every kind of defect with its occurrences.
    #[must_use]
    pub fn defects(&self) -> Vec<(&'static str, &[String])> {
        let all = [
            ("acknowledged and lost", &self.lost),
            ("doubled", &self.doubled),
            ("foreign", &self.foreign),
            ("refused and there", &self.refused_but_there),
            ("altered", &self.altered),
            ("events without documents or documents without events", &self.unmatched_events),
            ("wrong responses", &self.objections),
            ("audits and uploads without an end", &self.unfinished),
        ];
        all.into_iter().filter(|(_, o)| !o.is_empty()).map(|(n, o)| (n, o.as_slice())).collect()
    }

    /// Compares members of a document with the acknowledged ones.
    pub(super) fn compare<'m>(
        &mut self,
        name: &str,
        kept: impl Iterator<Item = (&'m String, &'m Value)>,
        body: &Value,
    ) {
        for (member, expected) in kept {
            if body[member] != *expected {
                let found = &body[member];
                self.altered.push(format!("{name}: {member} is {found}, not {expected}"));
            }
        }
    }

    /// Checks the number of events about a document.
    pub(super) fn events(&mut self, name: &str, event: &str, seen: u64, least: u64, most: u64) {
        if !(least..=most).contains(&seen) {
            let what = format!("{event} of {name}: {seen}, not {least} to {most}");
            self.unmatched_events.push(what);
        }
    }

    /// Compares a document with its acknowledged changes.
    pub(super) fn history(
        &mut self,
        book: &RequestLog,
        changes: &History<'_>,
        (stored, body): (&StoredDocument, &Value),
        versions: &mut Versions,
    ) {
        let name = format!("{} {}", stored.collection, stored.id);
        let numbers: Vec<u64> = changes.acknowledged.iter().filter_map(|change| change.0).collect();
        if numbers.windows(2).any(|pair| pair[0] == pair[1]) {
            self.altered.push(format!("{name}: two changes made one version, {numbers:?}"));
        }
        if changes.is_contended() {
            let before = versions.insert(stored.id.clone(), stored.version).unwrap_or(1);
            let (made, acknowledged) =
                (stored.version.saturating_sub(before), changes.acknowledged.len() as u64);
            if !(acknowledged..=acknowledged + changes.in_doubt).contains(&made) {
                let what = format!("{name}: {made} versions of {acknowledged} changes");
                self.altered.push(what);
            }
        }
        let mut last: Map<String, Value> = Map::new();
        for (_, kind, content, marker) in &changes.acknowledged {
            last.extend((*content).clone());
            if kind.adds() && !stored.text.contains(&book.text(*marker)) {
                self.lost.push(format!("{} of {name}: {}", kind.operation, book.text(*marker)));
            }
        }
        if changes.in_doubt == 0 {
            self.compare(&name, last.iter(), body);
        }
    }

    /// Copies the book's counters.
    pub(super) fn take_counts(&mut self, book: &RequestLog) {
        book.with(|pages| {
            self.statuses = std::mem::take(&mut pages.statuses);
            self.replays = pages.replays;
            self.objections.append(&mut pages.objections);
        });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.acknowledged as f64 / self.load.as_secs_f64().max(0.001);
        writeln!(
            f,
            "acknowledged {}, refused {}, unknown {}; {rate:.0} writes/s over {:.0} s; \
             {} retries, {} reads, {} kills",
            self.acknowledged,
            self.refused,
            self.unknown,
            self.load.as_secs_f64(),
            self.replays,
            self.read,
            self.kills
        )?;
        writeln!(
            f,
            "lost {}, doubled {}, foreign {}, refused and there {}, altered {}, unmatched events \
             {}, wrong responses {}, without an end {}",
            self.lost.len(),
            self.doubled.len(),
            self.foreign.len(),
            self.refused_but_there.len(),
            self.altered.len(),
            self.unmatched_events.len(),
            self.objections.len(),
            self.unfinished.len()
        )?;
        writeln!(f, "responses by status (0: none): {:?}", self.by_status())?;
        let failures = self.statuses.iter().filter(|((_, status), _)| *status >= 500);
        for ((operation, status), count) in failures {
            writeln!(f, "  {status} {operation}: {count}")?;
        }
        let mut jobs: BTreeMap<&str, u64> = BTreeMap::new();
        self.given_up.iter().for_each(|job| *jobs.entry(job).or_default() += 1);
        for (job, count) in jobs.iter().take(SHOWN) {
            writeln!(f, "job given up {count} times: {job}")?;
        }
        for (name, places) in self.defects() {
            for place in places.iter().take(SHOWN) {
                writeln!(f, "{name}: {}", place.chars().take(300).collect::<String>())?;
            }
        }
        Ok(())
    }
}
