//! CODEOWNERS files, in the dialects of GitHub and GitLab.
//!
//! `parse` makes rules of lines; `pattern` matches a rule against a path;
//! `evaluate` says whose a path is; `tally` learns from many paths which rules
//! do nothing. What a dialect does not have is skipped with a warning.

mod evaluate;
mod owner;
mod parse;
mod pattern;
mod place;
mod tally;
#[cfg(test)]
mod tests;

use std::fmt;
use std::rc::Rc;

use area_sdk::prelude::*;

pub(crate) use evaluate::{from_root, listed};
pub(crate) use owner::{Identity, email_local_part};
pub(crate) use parse::{MOST_BYTES, ParseError, parse};
pub(crate) use pattern::Pattern;
pub(crate) use place::{is_kubernetes_owners, name_rank, rank, said_by_place};
pub(crate) use tally::{Tally, hidden_for_sure};

/// How a file is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Dialect {
    /// The last rule that matches decides.
    Github,
    /// In each section the last rule that matches decides.
    Gitlab,
}

/// A line that is not read as its author may have meant it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Warning {
    /// From 1.
    pub(crate) line: u32,
    pub(crate) message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line {}: {}", self.line, self.message)
    }
}

/// One rule.
#[derive(Debug)]
pub(crate) struct Rule {
    /// From 1.
    pub(crate) line: u32,
    /// As it is written.
    pub(crate) text: String,
    pub(crate) pattern: Pattern,
    /// None: what matches has no owners. Rules of a section share its heading's.
    pub(crate) owners: Rc<[String]>,
}

/// Rules that are judged by themselves; a GitHub file has one section.
#[derive(Debug, Default)]
pub(crate) struct Section {
    /// Owners who need not approve.
    pub(crate) optional: bool,
    /// In the file's order.
    pub(crate) rules: Vec<Rule>,
    /// What matches one of these has no owners in this section.
    pub(crate) exclusions: Vec<Rule>,
}

/// A file that was read.
#[derive(Debug)]
pub(crate) struct Codeowners {
    pub(crate) dialect: Dialect,
    /// The one before the first heading first.
    pub(crate) sections: Vec<Section>,
    pub(crate) warnings: Vec<Warning>,
}

impl Codeowners {
    /// How many rules there are, exclusions included.
    pub(crate) fn rule_count(&self) -> usize {
        self.sections.iter().map(|section| section.rules.len() + section.exclusions.len()).sum()
    }
}
