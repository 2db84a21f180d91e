//! Writes to standard output and standard error. A lint forbids other modules
//! of the host to print.
//!
//! If the reader of standard output has closed it (`assurance area list |
//! head`), the process ends with the exit code of a process that SIGPIPE ended.
//! Nothing here panics.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use serde_json::{Map, Value as Json};

use super::CommonOptions;

/// Exit code that a shell reports for a process that SIGPIPE ended.
const ENDED_BY_SIGPIPE: i32 = 141;

impl CommonOptions {
    /// Prints a response of the service: as JSON, or for people with `show`.
    pub(super) fn print_answer(&self, answer: &Json, show: impl FnOnce(&Json)) {
        if self.json {
            return line(format_args!("{answer:#}"));
        }
        show(answer);
    }

    /// Prints `name: value` lines, or one JSON object of them.
    pub(super) fn print_values(&self, values: &[(&str, Json)]) {
        if self.json {
            let object: Map<String, Json> =
                values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            return line(Json::Object(object));
        }
        let width = values.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
        for (name, value) in values {
            let text = shown(value);
            line(format_args!("{:width$} {text}", format!("{}:", name.replace('_', " "))));
        }
    }
}

/// Formats a JSON value for people: a string without quotes, an array without
/// brackets.
fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(items) if items.is_empty() => "none".to_owned(),
        Json::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Prints a line on standard output. Ends the process if that fails.
pub(super) fn line(text: impl Display) {
    let written = try_line(text);
    or_end(written);
}

/// Prints text that contains its own line breaks. Ends the process if that
/// fails.
pub(super) fn text(text: impl Display) {
    let mut out = io::stdout().lock();
    let written = write!(out, "{text}").and_then(|()| out.flush());
    drop(out);
    or_end(written);
}

/// Prints a line on standard output, for a process that continues if that
/// fails.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn try_line(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Prints a line on standard error; ignores errors.
pub(super) fn note(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "assurance: {text}");
}

/// Returns an error with its causes. A cause that the text already has is not
/// repeated: many errors contain theirs.
pub(super) fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn or_end(written: io::Result<()>) {
    let Err(error) = written else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(ENDED_BY_SIGPIPE);
    }
    note(format_args!("standard output cannot be written: {error}"));
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    use assurance_core::config::files;

    #[test]
    fn each_cause_of_an_error_is_printed_once() {
        let folder = tempfile::tempdir().unwrap();
        let missing = files::read_private(&folder.path().join("key")).unwrap_err();
        let error = anyhow::Error::from(missing).context("nothing is sealed");
        let text = super::with_causes(&error);
        assert!(text.starts_with("nothing is sealed: ") && text.contains("/key cannot"), "{text}");
        assert_eq!(text.matches("os error 2").count(), 1, "{text}");
    }
}
