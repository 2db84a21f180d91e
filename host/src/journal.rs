//! What the guests of each area said last, and how its last calls failed, on
//! this node: the text that the log has, kept in memory for operators to ask.
//!
//! Invariant: an area has a bounded number of lines and bytes here, and a call
//! touches only its own area's, and only where its guest says something or
//! fails.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use dashmap::DashMap;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::area::Origin;
use crate::domain::id::JobId;
use crate::domain::time::{Clock, Timestamp};
use crate::recordings;

/// Lines kept of an area.
const LINES: usize = 1_000;
/// Failed calls kept of an area.
const FAULTS: usize = 20;
/// What either of them may come to, in bytes; the newest is kept whatever its
/// size.
const BYTES: usize = 256 << 10;

/// How much a line matters, in its guest's opinion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// For who writes the area.
    Debug,
    /// Worth knowing.
    Info,
    /// Worth a look.
    Warn,
    /// Something is wrong.
    Error,
}

/// Something a guest said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// How much it matters.
    pub level: Level,
    /// One line of readable characters.
    pub message: String,
}

/// A call that an area's code failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// `trap`, `deadline`, `cpu_time`, `out_of_memory`, `limit` or `contract`.
    pub kind: String,
    /// For a person.
    pub message: String,
    /// The guest's stack, symbolised, innermost first; empty where there is
    /// none.
    pub frames: Vec<String>,
    /// What the guest logged last, beyond the lines a call may have too.
    pub last_lines: Vec<String>,
}

/// A line or a fault, and of which call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry<T> {
    /// Later entries of the area have larger ones, after a restart too.
    pub id: i64,
    /// The moment.
    pub at: Timestamp,
    /// SHA-256 of the component that ran, lower-case hex.
    pub digest: Arc<str>,
    /// The request's, where the call was for one.
    pub request_id: Option<Arc<str>>,
    /// The job's, where the call was for one.
    pub job_id: Option<JobId>,
    /// The line or the fault.
    #[serde(flatten)]
    pub what: T,
}

/// Part of what an area's journal has, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Page {
    /// What guests said.
    pub lines: Vec<Arc<Entry<Line>>>,
    /// How calls failed.
    pub faults: Vec<Arc<Entry<Fault>>>,
    /// Asked with it, the area tells what came after this page.
    pub cursor: String,
    /// Lines that should be on this page are not kept any more.
    pub missed: bool,
}

/// The journals of this node's areas, which outlive the areas' versions.
pub struct Journals {
    clock: Clock,
    areas: DashMap<String, Arc<Journal>>,
}

/// One area's.
pub struct Journal {
    clock: Clock,
    kept: Mutex<Kept>,
}

struct Kept {
    newest: i64,
    lines: Ring<Line>,
    faults: Ring<Fault>,
}

/// The newest entries of a kind, by id.
struct Ring<T> {
    entries: VecDeque<(usize, Arc<Entry<T>>)>,
    most: usize,
    bytes: usize,
    /// The newest entry that is gone.
    gone: i64,
}

impl Journals {
    /// Empty ones.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, areas: DashMap::new() }
    }

    /// An area's, begun where there is none.
    #[must_use]
    pub fn of(&self, area: &str) -> Arc<Journal> {
        let begin = || Arc::new(Journal::new(self.clock.clone()));
        Arc::clone(&self.areas.entry(area.to_owned()).or_insert_with(begin))
    }

    /// An area's, if it has said or failed anything.
    #[must_use]
    pub fn find(&self, area: &str) -> Option<Arc<Journal>> {
        self.areas.get(area).map(|journal| Arc::clone(&journal))
    }
}

impl Journal {
    fn new(clock: Clock) -> Self {
        let kept = Kept { newest: 0, lines: Ring::new(LINES), faults: Ring::new(FAULTS) };
        Self { clock, kept: Mutex::new(kept) }
    }

    /// A guest said something.
    pub fn said(&self, digest: &str, origin: Option<&Origin>, level: Level, message: &str) {
        let line = Line { level, message: message.to_owned() };
        let mut kept = self.kept.lock();
        let entry = kept.entry(self.clock.now(), digest, origin, line);
        kept.lines.push(message.len(), entry);
    }

    /// A call failed, by the fault of the area's code.
    pub fn failed(
        &self,
        digest: &str,
        origin: Option<&Origin>,
        fault: recordings::Fault,
        last_lines: &[String],
    ) {
        let recordings::Fault { kind, message, frames } = fault;
        let message = message.unwrap_or_default();
        let fault = Fault { kind, message, frames, last_lines: last_lines.to_vec() };
        let texts = fault.frames.iter().chain(&fault.last_lines).map(String::len);
        let bytes = fault.message.len() + texts.sum::<usize>();
        let mut kept = self.kept.lock();
        let entry = kept.entry(self.clock.now(), digest, origin, fault);
        kept.faults.push(bytes, entry);
    }

    /// The last lines and faults; or, after a page, the first that came since.
    #[must_use]
    pub fn page(&self, after: Option<i64>, limit: usize) -> Page {
        let kept = self.kept.lock();
        let since = after.unwrap_or(i64::MIN);
        let (lines, more) = match after {
            None => (kept.lines.last(limit), false),
            Some(after) => kept.lines.first_after(after, limit),
        };
        let end = lines.last().filter(|_| more).map_or(kept.newest, |last| last.id);
        let faults = kept.faults.between(since, end);
        let missed = after.is_some_and(|after| kept.lines.gone > after);
        Page { lines, faults, cursor: end.to_string(), missed }
    }
}

impl Page {
    /// Of an area that has said nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self { lines: Vec::new(), faults: Vec::new(), cursor: "0".to_owned(), missed: false }
    }

    /// Whether there is nothing on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.faults.is_empty()
    }
}

impl Kept {
    /// Ids are microseconds, or one more than the last: who reads on after a
    /// restart gets what is new.
    fn entry<T>(
        &mut self,
        at: Timestamp,
        digest: &str,
        origin: Option<&Origin>,
        what: T,
    ) -> Entry<T> {
        self.newest = at.0.max(self.newest + 1);
        let (request_id, job_id) = match origin {
            Some(Origin::Request(id)) => (Some(Arc::clone(id)), None),
            Some(Origin::Job(id)) => (None, Some(*id)),
            Some(Origin::Rehearsal) | None => (None, None),
        };
        Entry { id: self.newest, at, digest: digest.into(), request_id, job_id, what }
    }
}

impl<T> Ring<T> {
    fn new(most: usize) -> Self {
        Self { entries: VecDeque::new(), most, bytes: 0, gone: i64::MIN }
    }

    fn push(&mut self, bytes: usize, entry: Entry<T>) {
        self.bytes += bytes;
        self.entries.push_back((bytes, Arc::new(entry)));
        while self.entries.len() > self.most || (self.bytes > BYTES && self.entries.len() > 1) {
            let Some((bytes, oldest)) = self.entries.pop_front() else { return };
            self.bytes -= bytes;
            self.gone = oldest.id;
        }
    }

    fn last(&self, limit: usize) -> Vec<Arc<Entry<T>>> {
        let surplus = self.entries.len().saturating_sub(limit);
        self.entries.iter().skip(surplus).map(|(_, entry)| Arc::clone(entry)).collect()
    }

    /// And whether there are more.
    fn first_after(&self, id: i64, limit: usize) -> (Vec<Arc<Entry<T>>>, bool) {
        let begin = self.entries.partition_point(|(_, entry)| entry.id <= id);
        let entries = self.entries.iter().skip(begin).take(limit);
        let entries = entries.map(|(_, entry)| Arc::clone(entry)).collect();
        (entries, self.entries.len() - begin > limit)
    }

    fn between(&self, after: i64, end: i64) -> Vec<Arc<Entry<T>>> {
        let entries = self.entries.iter().map(|(_, entry)| entry);
        entries.filter(|entry| entry.id > after && entry.id <= end).cloned().collect()
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        })
    }
}

impl fmt::Debug for Journals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journals").field("areas", &self.areas.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use super::*;

    fn journal() -> Arc<Journal> {
        let clock = Clock::Manual(Arc::new(AtomicI64::new(1_000_000)));
        Journals::new(clock).of("notes")
    }

    fn say(journal: &Journal, message: &str) {
        journal.said("d1", Some(&Origin::Request("r-1".into())), Level::Info, message);
    }

    fn messages(page: &Page) -> Vec<&str> {
        page.lines.iter().map(|line| line.what.message.as_str()).collect()
    }

    #[test]
    fn the_last_lines_are_told_and_then_what_came_since() {
        let journal = journal();
        for number in 0..5 {
            say(&journal, &number.to_string());
        }
        let last = journal.page(None, 2);
        assert_eq!((messages(&last), last.missed), (vec!["3", "4"], false));
        assert_eq!(last.lines[1].request_id.as_deref(), Some("r-1"));
        let cursor = last.cursor.parse().unwrap();
        assert!(journal.page(Some(cursor), 2).lines.is_empty());
        let job = JobId::new();
        journal.said("d2", Some(&Origin::Job(job)), Level::Warn, "5");
        let since = journal.page(Some(cursor), 2);
        assert_eq!((messages(&since), since.lines[0].job_id), (vec!["5"], Some(job)));
    }

    #[test]
    fn pages_leave_nothing_out_and_faults_come_in_their_order() {
        let journal = journal();
        say(&journal, "0");
        let fault = || recordings::Fault { kind: "trap".into(), ..recordings::Fault::default() };
        journal.failed("d1", None, fault(), &["0".to_owned()]);
        say(&journal, "1");
        journal.failed("d1", None, fault(), &[]);
        let first = journal.page(Some(0), 1);
        assert_eq!((messages(&first), first.faults.len()), (vec!["0"], 0));
        let second = journal.page(first.cursor.parse().ok(), 1);
        assert_eq!((messages(&second), second.faults.len()), (vec!["1"], 2));
        assert_eq!(journal.page(second.cursor.parse().ok(), 1).faults.len(), 0);
    }

    #[test]
    fn what_is_kept_is_bounded_and_who_comes_too_late_is_told() {
        let journal = journal();
        for number in 0..LINES + 5 {
            say(&journal, &number.to_string());
        }
        let all = journal.page(Some(0), usize::MAX);
        assert_eq!((all.lines.len(), messages(&all)[0], all.missed), (LINES, "5", true));
        for _ in 0..300 {
            say(&journal, &"x".repeat(1 << 10));
        }
        assert_eq!(journal.page(None, usize::MAX).lines.len(), 256);
        say(&journal, &"x".repeat(BYTES + 1));
        assert_eq!(journal.page(None, usize::MAX).lines.len(), 1);
    }
}
