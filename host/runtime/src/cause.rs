//! The cause of a failure in the guest's own words: its panic or exception,
//! which it has written as its last error lines.

use std::collections::VecDeque;

use assurance_core::area_log::LogLevel;

/// First line of a traceback of Python. Indented frames follow, then the
/// exception.
const TRACEBACK: &str = "Traceback (most recent call last):";
/// First words of a panic of Rust's standard library, with which a runtime of
/// another language ends after an exception.
const PANIC: &str = "thread '";
/// First words of the last line of a panic of Rust's standard library.
const ADVICE: &str = "note: run with `RUST_BACKTRACE";

/// Returns the cause of a guest's failure from its last log lines: the error
/// lines at the end, as one line; `None` if the last line is not an error.
pub(super) fn of(lines: &VecDeque<(LogLevel, String)>) -> Option<String> {
    let errors = lines.iter().rev().take_while(|(level, _)| *level == LogLevel::Error);
    let texts = errors.map(|(_, line)| line.as_str());
    let mut errors: Vec<&str> =
        texts.filter(|line| !line.trim().is_empty() && !line.starts_with(ADVICE)).collect();
    errors.reverse();
    let text = match errors.iter().rposition(|line| *line == TRACEBACK) {
        Some(begin) => exception(&errors[begin + 1..]),
        None => panic_text(&errors),
    };
    (!text.is_empty()).then_some(text)
}

/// Returns the exception below the frames of a traceback, with the innermost
/// frame.
fn exception(lines: &[&str]) -> String {
    let frames = lines.iter().take_while(|line| line.starts_with(' ')).count();
    let (frames, rest) = lines.split_at(frames);
    let end = rest.iter().position(|line| line.starts_with(PANIC)).unwrap_or(rest.len());
    let text = joined(&rest[..end]);
    match frames.iter().rfind(|line| line.trim_start().starts_with("File ")) {
        Some(innermost) => format!("{text} ({})", innermost.trim()),
        None => text,
    }
}

/// Returns a panic of Rust's standard library as one line, with its source
/// location at the end.
fn panic_text(lines: &[&str]) -> String {
    let first = lines.first().filter(|line| line.starts_with(PANIC));
    match first.and_then(|line| line.split_once(" panicked at ")) {
        Some((_, place)) => format!("{} ({})", joined(&lines[1..]), place.trim_end_matches(':')),
        None => joined(lines),
    }
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(errors: &str, expected: Option<&str>) {
        let lines = errors.lines().map(|line| (LogLevel::Error, line.to_owned()));
        let before = [(LogLevel::Error, "earlier".to_owned()), (LogLevel::Info, "1".to_owned())];
        assert_eq!(of(&before.into_iter().chain(lines).collect()).as_deref(), expected);
    }

    #[test]
    fn a_panic_is_one_line_without_advice() {
        check("", None);
        check("panicked at src/lib.rs:1:2: wrong", Some("panicked at src/lib.rs:1:2: wrong"));
        let printed = "\nthread 'main' panicked at src/lib.rs:1:2:\nwrong\n\
                       note: run with `RUST_BACKTRACE=1` environment variable to display it";
        check(printed, Some("wrong (src/lib.rs:1:2)"));
    }

    #[test]
    fn an_exception_is_named_before_its_place() {
        let traceback = "Traceback (most recent call last):\n  File \"/app.py\", line 9, in handle\n    \
                         read()\n  File \"/app.py\", line 4, in read\nKeyError: 'text'\n\n\
                         thread '<unnamed>' (1) panicked at runtime/src/lib.rs:1293:29:\n\
                         Python function threw an unexpected exception\n";
        check(traceback, Some("KeyError: 'text' (File \"/app.py\", line 4, in read)"));
    }
}
