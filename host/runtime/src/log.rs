//! Log lines of a guest: limited in number and size, without control
//! characters. The last ones are kept for failure reports.

use std::collections::VecDeque;

use super::instance::AreaName;
use assurance_core::domain::area::CallOrigin;
use assurance_core::journal::LogLevel;

/// Number of lines kept for failure reports.
const KEPT_LINES: usize = 20;

/// Log lines of one call.
#[derive(Debug)]
pub(super) struct GuestLog {
    lines_left: u32,
    max_bytes: usize,
    dropped: u64,
    last: VecDeque<String>,
}

impl GuestLog {
    pub(super) fn new(max_lines: u32, max_bytes: usize) -> Self {
        Self { lines_left: max_lines, max_bytes, dropped: 0, last: VecDeque::new() }
    }

    /// Writes a line to the log, or only counts it beyond the limit. In both
    /// cases it is kept as one of the last lines, which explain failures.
    pub(super) fn write(
        &mut self,
        area: &AreaName,
        origin: Option<&CallOrigin>,
        level: LogLevel,
        message: &str,
    ) {
        let line = clean(message, self.max_bytes);
        if self.lines_left == 0 {
            self.dropped += 1;
        } else {
            self.lines_left -= 1;
            emit(area, origin, level, &line);
        }
        if self.last.len() == KEPT_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    /// Returns the last lines; logs the number of dropped ones.
    pub(super) fn finish(&mut self, area: &AreaName, origin: Option<&CallOrigin>) -> Vec<String> {
        if self.dropped > 0 {
            let told =
                format!("{} log lines beyond the limit of a call were dropped", self.dropped);
            emit(area, origin, LogLevel::Warn, &told);
        }
        std::mem::take(&mut self.last).into()
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

/// Writes to the log and to the area's journal.
fn emit(area: &AreaName, origin: Option<&CallOrigin>, level: LogLevel, line: &str) {
    let name = area.name();
    match level {
        LogLevel::Error => tracing::error!(target: "guest", { area.name = name }, "{line}"),
        LogLevel::Warn => tracing::warn!(target: "guest", { area.name = name }, "{line}"),
        LogLevel::Info => tracing::info!(target: "guest", { area.name = name }, "{line}"),
        LogLevel::Debug => tracing::debug!(target: "guest", { area.name = name }, "{line}"),
    }
    if let Some(journal) = area.journal() {
        journal.add_line(area.digest(), origin, level, line);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use assurance_core::domain::time::Clock;
    use assurance_core::journal::Journals;

    #[test]
    fn a_line_is_cut_at_a_character_and_cannot_contain_another() {
        assert_eq!(clean("one\ntwo\u{1b}[31m", 100), "one\\ntwo\\u{1b}[31m");
        assert_eq!(clean("aää", 4), "aä…");
    }

    #[test]
    fn lines_over_the_limit_are_dropped_but_the_last_ones_are_kept() {
        let journals = Arc::new(Journals::new(Clock::System));
        let area = AreaName::new("0".repeat(64), journals.clone());
        area.set("notes");
        let mut log = GuestLog::new(2, 100);
        for number in 0..50 {
            log.write(&area, None, LogLevel::Info, &number.to_string());
        }
        assert_eq!(log.dropped, 48);
        let last = log.finish(&area, None);
        assert_eq!((last.len(), last[0].as_str()), (KEPT_LINES, "30"));
        let told = journals.find("notes").unwrap().page(None, 10).lines;
        assert_eq!((told.len(), told[2].what.level), (3, LogLevel::Warn));
    }
}
