//! Log of one call: the lines that a guest writes with the interface `log`, and
//! what it prints to WASI's stdout and stderr. Lines are limited in number and
//! size and have no control characters. The last ones explain a failure.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::cause;
use super::instance::AreaLogContext;
use assurance_core::area_log::LogLevel;
use assurance_core::domain::area::CallOrigin;

/// Number of a call's last log lines that are kept for failure reports.
const KEPT_LINES: usize = 20;
/// Longest log line of a guest in bytes; the rest is cut off.
const MAX_LINE_BYTES: usize = 4_096;
/// Longest cause of a failure in bytes; the rest is cut off.
const MAX_CAUSE_BYTES: usize = 2_000;

/// Log of one guest call; clones share it.
#[derive(Clone)]
pub(super) struct GuestLog(Arc<Mutex<CallLines>>);

/// Output stream of WASI to which a guest prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GuestOutputStream {
    Stdout,
    Stderr,
}

struct CallLines {
    area: Arc<AreaLogContext>,
    origin: Option<CallOrigin>,
    lines_left: u32,
    dropped: u64,
    last: VecDeque<(LogLevel, String)>,
    /// Text without a line end so far, by [`GuestOutputStream`].
    printed: [Vec<u8>; 2],
}

impl GuestLog {
    pub(super) fn new(
        area: Arc<AreaLogContext>,
        origin: Option<CallOrigin>,
        max_lines: u32,
    ) -> Self {
        Self(Arc::new(Mutex::new(CallLines {
            area,
            origin,
            lines_left: max_lines,
            dropped: 0,
            last: VecDeque::new(),
            printed: Default::default(),
        })))
    }

    /// Writes a line to the log, or only counts it beyond the limit. In both
    /// cases it is kept as one of the last lines, which explain failures.
    pub(super) fn write(&self, level: LogLevel, message: &str) {
        self.0.lock().write(level, message);
    }

    /// Writes what a guest prints, line by line: stdout at level info, stderr
    /// at level error.
    pub(super) fn print(&self, target: GuestOutputStream, text: &[u8]) {
        self.0.lock().print(target, text);
    }

    /// Returns what the guest wrote about its failure; `None` if its last line
    /// is not an error.
    pub(super) fn cause(&self) -> Option<String> {
        let mut lines = self.0.lock();
        lines.end_lines();
        cause::of(&lines.last).map(|text| clean(&text, MAX_CAUSE_BYTES))
    }

    /// Returns the last log lines at the end of a call; logs the number of
    /// dropped ones.
    pub(super) fn finish(&self) -> Vec<String> {
        let mut lines = self.0.lock();
        lines.end_lines();
        if lines.dropped > 0 {
            let dropped = format!(
                "{} log lines beyond the limit of a call were dropped (runtime.max_log_lines)",
                lines.dropped
            );
            lines.emit(LogLevel::Warn, &dropped);
        }
        std::mem::take(&mut lines.last).into_iter().map(|(_, line)| line).collect()
    }
}

impl GuestOutputStream {
    fn level(self) -> LogLevel {
        match self {
            Self::Stdout => LogLevel::Info,
            Self::Stderr => LogLevel::Error,
        }
    }
}

impl CallLines {
    fn write(&mut self, level: LogLevel, message: &str) {
        let line = clean(message, MAX_LINE_BYTES);
        if self.lines_left == 0 {
            self.dropped += 1;
        } else {
            self.lines_left -= 1;
            self.emit(level, &line);
        }
        if self.last.len() == KEPT_LINES {
            self.last.pop_front();
        }
        self.last.push_back((level, line));
    }

    /// Adds text that the guest prints, and writes the complete lines to the
    /// log. A line that is too long is cut where its text came in pieces.
    fn print(&mut self, target: GuestOutputStream, text: &[u8]) {
        for piece in text.split_inclusive(|byte| *byte == b'\n') {
            let line = &mut self.printed[target as usize];
            line.extend_from_slice(piece.strip_suffix(b"\n").unwrap_or(piece));
            if piece.ends_with(b"\n") || line.len() > MAX_LINE_BYTES {
                self.end_line(target);
            }
        }
    }

    fn end_line(&mut self, target: GuestOutputStream) {
        let line = std::mem::take(&mut self.printed[target as usize]);
        self.write(target.level(), String::from_utf8_lossy(&line).trim_end_matches('\r'));
    }

    fn end_lines(&mut self) {
        for target in [GuestOutputStream::Stdout, GuestOutputStream::Stderr] {
            if !self.printed[target as usize].is_empty() {
                self.end_line(target);
            }
        }
    }

    /// Writes a line of the guest to the host's log and to the area's log.
    fn emit(&self, level: LogLevel, line: &str) {
        let name = self.area.name();
        match level {
            LogLevel::Error => tracing::error!(target: "guest", { area.name = name }, "{line}"),
            LogLevel::Warn => tracing::warn!(target: "guest", { area.name = name }, "{line}"),
            LogLevel::Info => tracing::info!(target: "guest", { area.name = name }, "{line}"),
            LogLevel::Debug => tracing::debug!(target: "guest", { area.name = name }, "{line}"),
        }
        if let Some(area_log) = self.area.area_log() {
            area_log.add_line(self.area.digest(), self.origin.as_ref(), level, line);
        }
    }
}

/// Returns one line of printable characters, so that a guest cannot forge other
/// log lines.
pub(super) fn clean(message: &str, max_bytes: usize) -> String {
    let end = message.floor_char_boundary(max_bytes);
    let mut line = String::with_capacity(end);
    for c in message[..end].chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    if end < message.len() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use assurance_core::area_log::AreaLogs;
    use assurance_core::domain::time::Clock;

    /// Returns the log of a call of the area `notes`, and a function that reads the area's log.
    fn log(max_lines: u32) -> (GuestLog, impl Fn() -> Vec<(LogLevel, String)>) {
        let area_logs = Arc::new(AreaLogs::new(Clock::System));
        let area = Arc::new(AreaLogContext::new("0".repeat(64), area_logs.clone()));
        area.set("notes");
        let lines = move || {
            let page = area_logs.find("notes").expect("a log").page(None, 10);
            let lines = page.lines.iter();
            lines.map(|line| (line.what.level, line.what.message.clone())).collect()
        };
        (GuestLog::new(area, None, max_lines), lines)
    }

    #[test]
    fn a_line_is_cut_at_a_character_and_cannot_contain_another() {
        assert_eq!(clean("one\ntwo\u{1b}[31m", 100), "one\\ntwo\\u{1b}[31m");
        assert_eq!(clean("aää", 4), "aä…");
    }

    #[test]
    fn lines_over_the_limit_are_dropped_but_the_last_ones_are_kept() {
        let (log, lines) = log(2);
        for number in 0..50 {
            log.write(LogLevel::Info, &number.to_string());
        }
        let last = log.finish();
        assert_eq!((last.len(), last[0].as_str()), (KEPT_LINES, "30"));
        let lines = lines();
        assert_eq!((lines.len(), lines[2].0), (3, LogLevel::Warn));
        assert!(lines[2].1.starts_with("48 log lines"), "{lines:?}");
    }

    #[test]
    fn printed_text_becomes_lines_however_it_arrives() {
        let (log, lines) = log(100);
        log.print(GuestOutputStream::Stdout, b"one\r\ntw");
        log.print(GuestOutputStream::Stderr, b"wrong: \xff\n");
        log.print(GuestOutputStream::Stdout, b"o\n\nthree");
        log.print(GuestOutputStream::Stdout, &[b'x'; MAX_LINE_BYTES]);
        assert_eq!(log.finish().len(), 5);
        let lines = lines();
        let texts: Vec<_> = lines.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts[..4], ["one", "wrong: \u{fffd}", "two", ""]);
        assert!(texts[4].starts_with("threexxx") && texts[4].ends_with("x…"), "{texts:?}");
        assert_eq!((lines[0].0, lines[1].0), (LogLevel::Info, LogLevel::Error));
    }
}
