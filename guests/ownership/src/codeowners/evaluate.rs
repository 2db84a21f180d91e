//! Determines the owners of a path.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{Codeowners, Rule, Section};

/// Owners of a path according to a CODEOWNERS file, and the rules that decide.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PathOwners<'a> {
    /// Owners without duplicates; owners whose approval is required come first.
    pub(crate) owners: Vec<&'a str>,
    /// Line numbers of the deciding rules, in the order of the file; empty if no rule matches.
    pub(crate) lines: Vec<u32>,
}

/// Converts a path to one relative to the repository's root; `None` if nothing remains.
pub(crate) fn from_root(path: &str) -> Option<&str> {
    let path = path.trim_end_matches(['\r', '\n']);
    let path = path.strip_prefix("./").unwrap_or(path).trim_start_matches('/');
    (!path.is_empty()).then_some(path)
}

/// Decodes a line of a list of paths. Git writes unusual names in quotation marks with C escapes.
pub(crate) fn listed(line: &str) -> Cow<'_, str> {
    let line = line.trim_end_matches('\r');
    let quoted = line.strip_prefix('"').and_then(|line| line.strip_suffix('"'));
    match quoted.and_then(unescaped) {
        Some(name) => Cow::Owned(String::from_utf8_lossy(&name).into_owned()),
        None => Cow::Borrowed(line),
    }
}

/// Decodes C escapes as git writes them; `None` if they are invalid.
fn unescaped(name: &str) -> Option<Vec<u8>> {
    let mut bytes = name.bytes();
    let mut plain = Vec::with_capacity(name.len());
    while let Some(byte) = bytes.next() {
        plain.push(if byte == b'\\' { escaped(&mut bytes)? } else { byte });
    }
    Some(plain)
}

/// Decodes one C escape. `bytes` begins after the backslash.
fn escaped(bytes: &mut std::str::Bytes<'_>) -> Option<u8> {
    let digit = |byte: u8| matches!(byte, b'0'..=b'7').then(|| byte - b'0');
    Some(match bytes.next()? {
        b'a' => 0x07,
        b'b' => 0x08,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 0x0b,
        b'f' => 0x0c,
        b'r' => b'\r',
        byte @ (b'"' | b'\\') => byte,
        first @ b'0'..=b'3' => {
            digit(first)? << 6 | digit(bytes.next()?)? << 3 | digit(bytes.next()?)?
        }
        _ => return None,
    })
}

impl Section {
    /// Returns the rule of this section that decides the owners of a path; `None` if none matches.
    pub(crate) fn deciding(&self, path: &str) -> Option<&Rule> {
        if self.exclusions.iter().any(|rule| rule.pattern.matches(path)) {
            return None;
        }
        self.rules.iter().rev().find(|rule| rule.pattern.matches(path))
    }
}

impl Codeowners {
    /// Returns the owners of a path that is relative to the repository's root.
    pub(crate) fn owned(&self, path: &str) -> PathOwners<'_> {
        let mut owned = PathOwners::default();
        let mut seen = HashSet::new();
        let (optional, required): (Vec<_>, Vec<_>) =
            self.sections.iter().partition(|section| section.optional);
        for rule in required.iter().chain(&optional).filter_map(|section| section.deciding(path)) {
            owned.lines.push(rule.line);
            let owners = rule.owners.iter().map(String::as_str);
            owned.owners.extend(owners.filter(|owner| seen.insert(*owner)));
        }
        owned.lines.sort_unstable();
        owned
    }
}
