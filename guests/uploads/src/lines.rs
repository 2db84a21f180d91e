//! Detects line-based formats: a CODEOWNERS file, or a list of paths, one on each line, as `git
//! ls-files` writes it.

use crate::upload::{Format, Refusal};

/// Maximum length of a path in a list of paths, in bytes.
const MAX_PATH: usize = 4_096;

/// Maximum length of a filename extension, in bytes; a longer one is not taken as an extension.
const MAX_EXTENSION: usize = 16;

/// Detects the format of a text by its lines. A list of paths with an invalid path is refused, with
/// the number of the line.
pub(crate) fn recognize(filename: &str, text: &str) -> Result<Format, Refusal> {
    if is_code_owners(text) {
        return Ok(Format::CodeOwners);
    }
    let lines = || (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    let shown = lines().filter(|(_, line)| shows_path(line)).count();
    // A name without signs of a path, such as `Release Notes`, counts as a path if most lines are
    // paths.
    if is_prose(filename) || shown * 2 < lines().count() {
        return Ok(Format::Unknown);
    }
    if let Some(list) = other_list(text) {
        return Err(Refusal::new("unsupported_format", format!("It looks like {list}")));
    }
    match lines().find(|(_, line)| !can_be_path(line)) {
        None => Ok(Format::PathList),
        Some((number, _)) => Err(no_path(number)),
    }
}

fn no_path(line: usize) -> Refusal {
    let detail = format!(
        "It looks like a list of paths, but line {line} is not a path: a path has at most \
        {MAX_PATH} bytes, no control characters, and quotation marks only as git writes them. \
        Send the output of git ls-files."
    );
    Refusal::new("unsupported_format", detail)
}

/// Returns what a list is instead of a list of paths, and what to send; `None` if less than half of
/// its lines are of such a kind.
fn other_list(text: &str) -> Option<&'static str> {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let half =
        |is: fn(&str) -> bool| lines().filter(|line| is(line)).count() * 2 >= lines().count();
    if half(is_package) {
        Some("a list of packages. Send an SBOM instead: CycloneDX or SPDX as JSON.")
    } else if half(|line| line.contains('\\') && !line.contains(['/', '"'])) {
        Some("a list of paths with `\\`. Write them with `/`, as git ls-files does.")
    } else if half(|line| matches!(line.get(..3), Some(" M " | " D " | "?? "))) {
        Some("output of git status. Send the output of git ls-files.")
    } else if half(|line| line.find("  ").is_some_and(|at| at >= 32)) {
        Some("a list of checksums. Send the output of git ls-files.")
    } else {
        None
    }
}

/// Whether a line is a requirement of pip, a line of `go.sum`, or a purl.
fn is_package(line: &str) -> bool {
    let has = |sign: &str| line.split_once(sign).is_some_and(|(name, _)| !name.contains('/'));
    line.starts_with("pkg:") || line.contains(" h1:") || has("==") || has(">=")
}

/// Whether a text that begins like JSON begins with a path, such as `[slug].tsx` or
/// `{{cookiecutter.name}}/setup.py`.
pub(crate) fn begins_with_path(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default().trim_end();
    let is_marked = first.contains('/') || has_extension(first);
    can_be_path(first) && is_marked && first.contains([']', '}']) && !first.contains(':')
}

/// Whether every line is a CODEOWNERS rule, and either most rules have owners or one has a pattern
/// that is not a path.
fn is_code_owners(text: &str) -> bool {
    let rules = || {
        let lines = text.lines().map(str::trim);
        lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
    };
    let owned = rules().filter(|line| later_words(line).any(is_owner)).count();
    rules().all(is_rule) && owned > 0 && (owned * 2 > rules().count() || rules().any(is_pattern))
}

/// Returns the words of a rule after the pattern, without a comment.
fn later_words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace().skip(1).take_while(|word| !word.starts_with('#'))
}

fn is_owner(word: &str) -> bool {
    word.contains('@')
}

/// Whether a line is a CODEOWNERS rule (a pattern with owners) or a section heading of GitLab's
/// dialect.
fn is_rule(line: &str) -> bool {
    line.starts_with(['[', '^']) || later_words(line).all(is_owner)
}

/// Whether a line is a section heading, or has a pattern that git would not list as a path.
fn is_pattern(line: &str) -> bool {
    let heading = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t', '[']);
    if line.starts_with('[') {
        return line.split_once(']').is_some_and(|(_, rest)| heading(rest));
    }
    let pattern = line.split_whitespace().next().unwrap_or_default();
    pattern.starts_with(['/', '^', '!']) || pattern.ends_with('/') || pattern.contains('*')
}

/// Whether a line can be a path. Git writes names with unusual characters in quotation marks.
fn can_be_path(line: &str) -> bool {
    let quoted = line.strip_prefix('"').and_then(|line| line.strip_suffix('"'));
    let is_whole = match quoted {
        Some(name) => !name.replace("\\\\", "").replace("\\\"", "").contains('"'),
        None => !line.contains('"'),
    };
    is_whole && line.len() <= MAX_PATH && !line.contains(char::is_control)
}

/// Whether a line has signs of a path: it is one word, or contains a folder or a filename
/// extension.
fn shows_path(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let label = words.next().is_some_and(|word| word.ends_with(':'));
    let is_word = words.next().is_none();
    can_be_path(line) && (is_word || !label && (line.contains('/') || has_extension(line)))
}

fn has_extension(line: &str) -> bool {
    let Some((_, extension)) = line.trim_end_matches('"').rsplit_once('.') else { return false };
    extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && extension.len() <= MAX_EXTENSION
        && extension.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Whether the file contains prose or another format, by its extension; its lines could be taken
/// for paths.
fn is_prose(filename: &str) -> bool {
    let extension = filename.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(
        extension.as_deref(),
        Some("md" | "rst" | "csv" | "tsv" | "yaml" | "yml" | "toml" | "xml" | "html" | "log")
    )
}
