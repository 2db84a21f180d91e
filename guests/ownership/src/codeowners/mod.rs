//! CODEOWNERS files in the dialects of GitHub and GitLab.
//!
//! `parse` converts lines to rules, `pattern` matches a rule with a path, `evaluate` determines a
//! path's owners, and `tally` finds rules without effect. Syntax that a dialect does not have is
//! skipped with a warning.

mod evaluate;
mod glob;
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
pub(crate) use owner::{OwnerReference, email_local_part};
pub(crate) use parse::{MOST_BYTES, ParseError, parse};
pub(crate) use pattern::Pattern;
pub(crate) use place::{is_kubernetes_owners, name_rank, rank, said_by_place};
pub(crate) use tally::{PathCounts, hidden_for_sure};

/// Dialect of a CODEOWNERS file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Dialect {
    /// The dialect of GitHub: the last matching rule decides.
    Github,
    /// The dialect of GitLab: in each section, the last matching rule decides.
    Gitlab,
}

/// A warning about a line of a CODEOWNERS file that may not mean what its author intended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Warning {
    /// Number of the line of the CODEOWNERS file that the warning is about, from 1.
    pub(crate) line: u32,
    pub(crate) message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line {}: {}", self.line, self.message)
    }
}

/// A rule of a CODEOWNERS file: a pattern and its owners.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Number of the rule's line in the CODEOWNERS file, from 1.
    pub(crate) line: u32,
    /// The rule's pattern as written in the CODEOWNERS file.
    pub(crate) text: String,
    pub(crate) pattern: Pattern,
    /// Owners of paths that match the rule; empty if such paths have no owners. Rules without
    /// owners share those of the section's heading.
    pub(crate) owners: Rc<[String]>,
}

/// Rules of a CODEOWNERS file that are evaluated together. A GitHub file has one section.
#[derive(Debug, Default)]
pub(crate) struct Section {
    /// Whether the approval of the section's owners is optional (`^[name]` in GitLab).
    pub(crate) optional: bool,
    /// Rules of the section in the order of the file.
    pub(crate) rules: Vec<Rule>,
    /// Exclusions: paths that match one of these have no owners in this section.
    pub(crate) exclusions: Vec<Rule>,
}

/// A parsed CODEOWNERS file.
#[derive(Debug)]
pub(crate) struct Codeowners {
    pub(crate) dialect: Dialect,
    /// Sections; the rules before the first heading are the first section.
    pub(crate) sections: Vec<Section>,
    pub(crate) warnings: Vec<Warning>,
}

impl Codeowners {
    /// Returns the number of rules in the CODEOWNERS file, including exclusions.
    pub(crate) fn rule_count(&self) -> usize {
        self.sections.iter().map(|section| section.rules.len() + section.exclusions.len()).sum()
    }
}
