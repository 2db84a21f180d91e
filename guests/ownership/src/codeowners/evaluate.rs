//! Whose a path is.

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
        let (optional, required): (Vec<_>, Vec<_>) =
            self.sections.iter().partition(|section| section.optional);
        for rule in required.iter().chain(&optional).filter_map(|section| section.deciding(path)) {
            owned.lines.push(rule.line);
            for owner in &rule.owners {
                if !owned.owners.contains(&owner.as_str()) {
                    owned.owners.push(owner);
                }
            }
        }
        owned.lines.sort_unstable();
        owned
    }
}
