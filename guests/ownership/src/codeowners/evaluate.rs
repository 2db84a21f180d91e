//! Whose a path is.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{Codeowners, Rule, Section};

/// What a file says of a path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Owned<'a> {
    /// Those who must approve first; each once.
    pub(crate) owners: Vec<&'a str>,
    /// The lines that decided, in the file's order; none: no rule matches.
    pub(crate) lines: Vec<u32>,
}

/// A path as patterns want it, written from the repository's root; nothing
/// where there is none.
pub(crate) fn from_root(path: &str) -> Option<&str> {
    let path = path.trim_end_matches(['\r', '\n']);
    let path = path.strip_prefix("./").unwrap_or(path).trim_start_matches('/');
    (!path.is_empty()).then_some(path)
}

/// A line of a path list as the path that it names: git puts names with odd
/// characters between quotation marks and escapes them as C does.
pub(crate) fn listed(line: &str) -> Cow<'_, str> {
    let line = line.trim_end_matches('\r');
    let quoted = line.strip_prefix('"').and_then(|line| line.strip_suffix('"'));
    match quoted.and_then(unescaped) {
        Some(name) => Cow::Owned(String::from_utf8_lossy(&name).into_owned()),
        None => Cow::Borrowed(line),
    }
}

/// The bytes of a name without git's escapes; nothing where they are wrong.
fn unescaped(name: &str) -> Option<Vec<u8>> {
    let mut bytes = name.bytes();
    let mut plain = Vec::with_capacity(name.len());
    while let Some(byte) = bytes.next() {
        plain.push(if byte == b'\\' { escaped(&mut bytes)? } else { byte });
    }
    Some(plain)
}

/// The byte that an escape stands for, what follows the backslash being next.
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
    /// The rule that decides over a path in this section.
    pub(crate) fn deciding(&self, path: &str) -> Option<&Rule> {
        if self.exclusions.iter().any(|rule| rule.pattern.matches(path)) {
            return None;
        }
        self.rules.iter().rev().find(|rule| rule.pattern.matches(path))
    }
}

impl Codeowners {
    /// Whose a path is, written from the repository's root.
    pub(crate) fn owned(&self, path: &str) -> Owned<'_> {
        let mut owned = Owned::default();
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
