//! The latest log lines and faults of each area's guests on this node. They are
//! also in the host's log; this copy in memory is for operators' queries.
//!
//! Invariant: lines and bytes are bounded for each area. A call locks only its
//! own area's log, and only when its guest logs or fails.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use dashmap::DashMap;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::area::CallOrigin;
use crate::domain::id::JobId;
use crate::domain::time::{Clock, Timestamp};
use crate::recordings;

/// Maximum number of log lines kept for an area.
const LINES: usize = 1_000;
/// Maximum number of faults kept for an area.
const FAULTS: usize = 20;
/// Maximum total size of the log lines that are kept for an area, and of its
/// faults, in bytes. The newest entry is kept whatever its size.
const BYTES: usize = 256 << 10;

/// Severity of a log line, chosen by the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// A detail for the area's developers.
    Debug,
    /// An event of normal operation.
    Info,
    /// An event that may need attention.
    Warn,
    /// An error that the guest reports.
    Error,
}

/// One log line of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// Severity of the log line.
    pub level: LogLevel,
    /// Text of the log line, printable characters only.
    pub message: String,
}

/// A call that failed by a fault of the area's code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallFault {
    /// Kind of the fault: `trap`, `deadline`, `cpu_time`, `out_of_memory`,
    /// `limit` or `contract`.
    pub kind: String,
    /// Description of the fault, for a person.
    pub message: String,
    /// The guest's symbolized stack at the fault, innermost frame first; empty
    /// if there is none.
    pub frames: Vec<String>,
    /// Last log lines of the guest before the fault, including those beyond the
    /// limit of a call.
    pub last_lines: Vec<String>,
}

/// A log line or fault with the call that caused it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AreaLogEntry<T> {
    /// Id of the entry; later entries of the area have larger ids, also after a
    /// restart.
    pub id: i64,
    /// Time at which the entry was added to the log.
    pub at: Timestamp,
    /// SHA-256 of the component that ran, lower-case hex.
    pub digest: Arc<str>,
    /// Id of the request, if the call served one.
    pub request_id: Option<Arc<str>>,
    /// Id of the job, if the call ran one.
    pub job_id: Option<JobId>,
    /// The log line or fault itself.
    #[serde(flatten)]
    pub what: T,
}

/// A page of an area's log, oldest entry first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AreaLogPage {
    /// Log lines of guests, oldest first.
    pub lines: Vec<Arc<AreaLogEntry<LogLine>>>,
    /// Faults of calls, oldest first.
    pub faults: Vec<Arc<AreaLogEntry<CallFault>>>,
    /// Cursor for the log entries after this page.
    pub cursor: String,
    /// Whether lines that belong on this page have already been dropped.
    pub missed: bool,
}

/// The logs of all areas on this node. They outlive the areas' versions.
pub struct AreaLogs {
    clock: Clock,
    areas: DashMap<String, Arc<AreaLog>>,
}

/// The latest log lines and faults of one area on this node.
pub struct AreaLog {
    clock: Clock,
    kept: Mutex<AreaLogState>,
}

struct AreaLogState {
    newest: i64,
    lines: NewestEntries<LogLine>,
    faults: NewestEntries<CallFault>,
}

/// Bounded list of the newest entries of one kind, ordered by id.
struct NewestEntries<T> {
    entries: VecDeque<(usize, Arc<AreaLogEntry<T>>)>,
    most: usize,
    bytes: usize,
    /// Id of the newest entry that was dropped to keep the limits.
    newest_dropped: i64,
}

impl AreaLogs {
    /// Creates the logs without any entries.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, areas: DashMap::new() }
    }

    /// Returns the log of an area; creates it if it is missing.
    #[must_use]
    pub fn of(&self, area: &str) -> Arc<AreaLog> {
        let begin = || Arc::new(AreaLog::new(self.clock.clone()));
        Arc::clone(&self.areas.entry(area.to_owned()).or_insert_with(begin))
    }

    /// Returns the log of an area; `None` if the area has no log yet.
    #[must_use]
    pub fn find(&self, area: &str) -> Option<Arc<AreaLog>> {
        self.areas.get(area).map(|area_log| Arc::clone(&area_log))
    }
}

impl AreaLog {
    fn new(clock: Clock) -> Self {
        let kept = AreaLogState {
            newest: 0,
            lines: NewestEntries::new(LINES),
            faults: NewestEntries::new(FAULTS),
        };
        Self { clock, kept: Mutex::new(kept) }
    }

    /// Adds a log line of a guest to the log.
    pub fn add_line(
        &self,
        digest: &str,
        origin: Option<&CallOrigin>,
        level: LogLevel,
        message: &str,
    ) {
        let line = LogLine { level, message: message.to_owned() };
        let mut kept = self.kept.lock();
        let entry = kept.entry(self.clock.now(), digest, origin, line);
        kept.lines.push(message.len(), entry);
    }

    /// Adds a fault of the area's code to the log.
    pub fn failed(
        &self,
        digest: &str,
        origin: Option<&CallOrigin>,
        fault: recordings::RecordedFault,
        last_lines: &[String],
    ) {
        let recordings::RecordedFault { kind, message, frames } = fault;
        let message = message.unwrap_or_default();
        let fault = CallFault { kind, message, frames, last_lines: last_lines.to_vec() };
        let texts = fault.frames.iter().chain(&fault.last_lines).map(String::len);
        let bytes = fault.message.len() + texts.sum::<usize>();
        let mut kept = self.kept.lock();
        let entry = kept.entry(self.clock.now(), digest, origin, fault);
        kept.faults.push(bytes, entry);
    }

    /// Returns at most `limit` of the newest log lines, and all faults. With
    /// `after`, returns the first log lines after that id instead, and the
    /// faults up to the last of these lines.
    #[must_use]
    pub fn page(&self, after: Option<i64>, limit: usize) -> AreaLogPage {
        let kept = self.kept.lock();
        let since = after.unwrap_or(i64::MIN);
        let (lines, more) = match after {
            None => (kept.lines.last(limit), false),
            Some(after) => kept.lines.first_after(after, limit),
        };
        let end = lines.last().filter(|_| more).map_or(kept.newest, |last| last.id);
        let faults = kept.faults.between(since, end);
        let missed = after.is_some_and(|after| kept.lines.newest_dropped > after);
        AreaLogPage { lines, faults, cursor: end.to_string(), missed }
    }
}

impl AreaLogPage {
    /// Returns the log page of an area without entries.
    #[must_use]
    pub fn empty() -> Self {
        Self { lines: Vec::new(), faults: Vec::new(), cursor: "0".to_owned(), missed: false }
    }

    /// Returns whether the log page has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.faults.is_empty()
    }
}

impl AreaLogState {
    /// Creates a log entry. Its id is the time in microseconds, or the last id
    /// plus one, so a client that continues after a restart misses nothing.
    fn entry<T>(
        &mut self,
        at: Timestamp,
        digest: &str,
        origin: Option<&CallOrigin>,
        what: T,
    ) -> AreaLogEntry<T> {
        self.newest = at.0.max(self.newest + 1);
        let (request_id, job_id) = match origin {
            Some(CallOrigin::Request(id)) => (Some(Arc::clone(id)), None),
            Some(CallOrigin::Job(id)) => (None, Some(*id)),
            Some(CallOrigin::SmokeTest) | None => (None, None),
        };
        AreaLogEntry { id: self.newest, at, digest: digest.into(), request_id, job_id, what }
    }
}

impl<T> NewestEntries<T> {
    fn new(most: usize) -> Self {
        Self { entries: VecDeque::new(), most, bytes: 0, newest_dropped: i64::MIN }
    }

    fn push(&mut self, bytes: usize, entry: AreaLogEntry<T>) {
        self.bytes += bytes;
        self.entries.push_back((bytes, Arc::new(entry)));
        while self.entries.len() > self.most || (self.bytes > BYTES && self.entries.len() > 1) {
            let Some((bytes, oldest)) = self.entries.pop_front() else { return };
            self.bytes -= bytes;
            self.newest_dropped = oldest.id;
        }
    }

    fn last(&self, limit: usize) -> Vec<Arc<AreaLogEntry<T>>> {
        let surplus = self.entries.len().saturating_sub(limit);
        self.entries.iter().skip(surplus).map(|(_, entry)| Arc::clone(entry)).collect()
    }

    /// Returns the first `limit` entries after the entry with this id, and
    /// whether there are more.
    fn first_after(&self, id: i64, limit: usize) -> (Vec<Arc<AreaLogEntry<T>>>, bool) {
        let begin = self.entries.partition_point(|(_, entry)| entry.id <= id);
        let entries = self.entries.iter().skip(begin).take(limit);
        let entries = entries.map(|(_, entry)| Arc::clone(entry)).collect();
        (entries, self.entries.len() - begin > limit)
    }

    fn between(&self, after: i64, end: i64) -> Vec<Arc<AreaLogEntry<T>>> {
        let entries = self.entries.iter().map(|(_, entry)| entry);
        entries.filter(|entry| entry.id > after && entry.id <= end).cloned().collect()
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use super::*;

    fn area_log() -> Arc<AreaLog> {
        let clock = Clock::Manual(Arc::new(AtomicI64::new(1_000_000)));
        AreaLogs::new(clock).of("notes")
    }

    fn say(area_log: &AreaLog, message: &str) {
        area_log.add_line("d1", Some(&CallOrigin::Request("r-1".into())), LogLevel::Info, message);
    }

    fn messages(page: &AreaLogPage) -> Vec<&str> {
        page.lines.iter().map(|line| line.what.message.as_str()).collect()
    }

    #[test]
    fn the_last_lines_are_told_and_then_what_came_since() {
        let area_log = area_log();
        for number in 0..5 {
            say(&area_log, &number.to_string());
        }
        let last = area_log.page(None, 2);
        assert_eq!((messages(&last), last.missed), (vec!["3", "4"], false));
        assert_eq!(last.lines[1].request_id.as_deref(), Some("r-1"));
        let cursor = last.cursor.parse().unwrap();
        assert!(area_log.page(Some(cursor), 2).lines.is_empty());
        let job = JobId::new();
        area_log.add_line("d2", Some(&CallOrigin::Job(job)), LogLevel::Warn, "5");
        let since = area_log.page(Some(cursor), 2);
        assert_eq!((messages(&since), since.lines[0].job_id), (vec!["5"], Some(job)));
    }

    #[test]
    fn pages_leave_nothing_out_and_faults_come_in_their_order() {
        let area_log = area_log();
        say(&area_log, "0");
        let fault = || recordings::RecordedFault {
            kind: "trap".into(),
            ..recordings::RecordedFault::default()
        };
        area_log.failed("d1", None, fault(), &["0".to_owned()]);
        say(&area_log, "1");
        area_log.failed("d1", None, fault(), &[]);
        let first = area_log.page(Some(0), 1);
        assert_eq!((messages(&first), first.faults.len()), (vec!["0"], 0));
        let second = area_log.page(first.cursor.parse().ok(), 1);
        assert_eq!((messages(&second), second.faults.len()), (vec!["1"], 2));
        assert_eq!(area_log.page(second.cursor.parse().ok(), 1).faults.len(), 0);
    }

    #[test]
    fn what_is_kept_is_bounded_and_who_comes_too_late_is_told() {
        let area_log = area_log();
        for number in 0..LINES + 5 {
            say(&area_log, &number.to_string());
        }
        let all = area_log.page(Some(0), usize::MAX);
        assert_eq!((all.lines.len(), messages(&all)[0], all.missed), (LINES, "5", true));
        for _ in 0..300 {
            say(&area_log, &"x".repeat(1 << 10));
        }
        assert_eq!(area_log.page(None, usize::MAX).lines.len(), 256);
        say(&area_log, &"x".repeat(BYTES + 1));
        assert_eq!(area_log.page(None, usize::MAX).lines.len(), 1);
    }
}
