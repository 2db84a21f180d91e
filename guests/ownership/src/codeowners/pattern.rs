//! Compiles patterns of CODEOWNERS files to the globs that `glob` matches.
//!
//! GitHub's patterns follow gitignore. A slash at the beginning or in the middle anchors a pattern
//! to the root. A match of a folder matches everything in it, except for a `*` at the end of an
//! anchored pattern. Brackets are ordinary characters.
//!
//! GitLab's patterns follow Ruby's `File.fnmatch` over the whole path. Only a leading slash anchors
//! a pattern to the root, and only a trailing slash matches the content of a folder.

use super::Dialect;
use super::glob::path_matches;

/// Maximum size of a CODEOWNERS pattern in bytes; the time of a match grows with the size.
pub(crate) const MOST_PATTERN_BYTES: usize = 1024;

/// Maximum size of a path in bytes, the limit of Linux. A longer path matches no pattern.
const MOST_PATH_BYTES: usize = 4096;

/// The compiled pattern of a CODEOWNERS rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pattern {
    /// Globs of the pattern; a path matches the pattern if it matches one of them.
    pub(super) globs: Vec<String>,
}

/// Part of a CODEOWNERS pattern between two slashes.
struct Segment {
    glob: String,
    kind: SegmentKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SegmentKind {
    /// The segment `**`: any number of folders.
    AnyDepth,
    /// The segment `*`: any one name.
    AnyName,
    Other,
}

impl Pattern {
    /// Compiles a pattern as written in a CODEOWNERS file.
    pub(crate) fn compile(text: &str, dialect: Dialect) -> Self {
        let globs = match dialect {
            Dialect::Github => github(text),
            Dialect::Gitlab => vec![gitlab(text)],
        };
        Self { globs }
    }

    /// Whether the pattern matches this path, which is relative to the repository's root.
    pub(crate) fn matches(&self, path: &str) -> bool {
        path.len() <= MOST_PATH_BYTES && self.globs.iter().any(|glob| path_matches(glob, path))
    }

    /// Whether the pattern matches every path.
    pub(crate) fn is_catch_all(&self) -> bool {
        self.globs.iter().any(|glob| matches!(glob.as_str(), "**" | "**/*" | "**/**"))
    }
}

fn github(text: &str) -> Vec<String> {
    let body = text.strip_prefix('/').unwrap_or(text);
    let (body, only_within) = match body.strip_suffix('/') {
        Some(body) => (body, true),
        None => (body, false),
    };
    let segments = segments(body, Dialect::Github);
    let tied = text.starts_with('/') || segments.len() > 1;
    let last = segments.last().map_or(SegmentKind::Other, |segment| segment.kind);
    let base = join(&segments, if tied { "" } else { "**/" });
    match last {
        SegmentKind::AnyDepth => vec![base],
        _ if only_within => vec![format!("{base}/**")],
        SegmentKind::AnyName if tied => vec![base],
        _ => vec![format!("{base}/**"), base],
    }
}

fn gitlab(text: &str) -> String {
    if text == "*" {
        return "**/*".to_owned();
    }
    let body = text.strip_prefix('/').unwrap_or(text);
    let (body, within) = match body.strip_suffix('/') {
        Some(body) => (body, "/**/*"),
        None => (body, ""),
    };
    let mut segments = segments(body, Dialect::Gitlab);
    // Ruby supports `**` only before a slash.
    if let Some(last) = segments.last_mut()
        && last.kind == SegmentKind::AnyDepth
        && within.is_empty()
    {
        "*".clone_into(&mut last.glob);
    }
    join(&segments, if text.starts_with('/') { "" } else { "**/" }) + within
}

fn join(segments: &[Segment], prefix: &str) -> String {
    let globs: Vec<&str> = segments.iter().map(|segment| segment.glob.as_str()).collect();
    format!("{prefix}{}", globs.join("/"))
}

fn segments(body: &str, dialect: Dialect) -> Vec<Segment> {
    body.split('/').map(|raw| segment(raw, dialect)).collect()
}

fn segment(raw: &str, dialect: Dialect) -> Segment {
    match raw {
        "**" => Segment { glob: "**".to_owned(), kind: SegmentKind::AnyDepth },
        "*" => Segment { glob: "*".to_owned(), kind: SegmentKind::AnyName },
        _ => Segment { glob: translate(raw, dialect), kind: SegmentKind::Other },
    }
}

/// Converts one segment of a CODEOWNERS pattern to the syntax of globs.
fn translate(raw: &str, dialect: Dialect) -> String {
    let mut glob = String::with_capacity(raw.len() + 4);
    let mut rest = raw;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '*' => {
                glob.push('*');
                rest = rest.trim_start_matches('*');
            }
            '?' => glob.push('?'),
            '\\' => match rest.chars().next() {
                Some(escaped) => {
                    literal(&mut glob, escaped);
                    rest = &rest[escaped.len_utf8()..];
                }
                None => literal(&mut glob, '\\'),
            },
            '[' if dialect == Dialect::Gitlab => match class(rest) {
                Some((class, after)) => {
                    glob.push_str(&class);
                    rest = after;
                }
                None => literal(&mut glob, '['),
            },
            _ => literal(&mut glob, letter),
        }
    }
    glob
}

/// Appends a literal character to a glob, escaped if necessary.
fn literal(glob: &mut String, letter: char) {
    if "\\*?[".contains(letter) {
        glob.push('\\');
    }
    glob.push(letter);
}

/// Parses the bracket expression after a `[`. Returns the expression and the rest of the text.
fn class(after: &str) -> Option<(String, &str)> {
    let mut class = String::from("[");
    let mut letters = after.char_indices().peekable();
    if letters.next_if(|(_, letter)| matches!(letter, '!' | '^')).is_some() {
        class.push('!');
    }
    let mut members = 0;
    while let Some((at, letter)) = letters.next() {
        match letter {
            ']' if members > 0 => return Some((class + "]", &after[at + 1..])),
            '-' if members > 0 => class.push('-'),
            '\\' => class_member(&mut class, letters.next()?.1),
            _ => class_member(&mut class, letter),
        }
        members += 1;
    }
    None
}

fn class_member(class: &mut String, letter: char) {
    if "\\]!-".contains(letter) {
        class.push('\\');
    }
    class.push(letter);
}
