//! Finds rules that match no path, and rules that later rules always override.

use std::collections::BTreeMap;

use area_sdk::prelude::*;

use super::{Codeowners, Rule, Section, Warning};

/// Effect of a CODEOWNERS rule on the paths of a repository.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum RuleUsageStatus {
    /// The rule matched no path.
    Unmatched,
    /// Later rules overrode the rule for every path that it matched.
    Hidden,
    /// The rule decided the owners of a path.
    Used,
}

/// Counts of a repository's paths and effects of CODEOWNERS rules on them, stored between the steps
/// of an import.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct PathCounts {
    pub(crate) paths: u64,
    pub(crate) unowned: u64,
    /// One letter for each rule, in the order of the sections, with exclusions after rules: `.`
    /// unmatched, `h` hidden, `u` used. A string, because it is part of a JSON job.
    usage: String,
}

impl PathCounts {
    /// Counts these paths of the repository, and updates the effects of the rules on them.
    pub(crate) fn count<'p>(
        &mut self,
        file: &Codeowners,
        paths: impl IntoIterator<Item = &'p str>,
    ) {
        let mut usage = self.usages(file);
        for path in paths {
            self.paths += 1;
            let mut owned = false;
            let mut from = 0;
            for section in &file.sections {
                let to = from + section.rules.len() + section.exclusions.len();
                owned |= see(section, path, &mut usage[from..to]);
                from = to;
            }
            self.unowned += u64::from(!owned);
        }
        self.usage = usage.into_iter().map(letter).collect();
    }

    /// Returns the effect of each CODEOWNERS rule, in the order of the sections.
    fn usages(&self, file: &Codeowners) -> Vec<RuleUsageStatus> {
        let mut usage: Vec<RuleUsageStatus> = self.usage.chars().map(usage).collect();
        usage.resize(file.rule_count(), RuleUsageStatus::Unmatched);
        usage
    }

    /// Returns warnings about rules that matched no path, and about rules that later rules
    /// override.
    pub(crate) fn warnings(&self, file: &Codeowners) -> Vec<Warning> {
        let rules = file.sections.iter().flat_map(|section| {
            section.rules.iter().chain(&section.exclusions).map(move |rule| (section, rule))
        });
        let mut warnings: Vec<Warning> = rules
            .zip(self.usages(file))
            .filter_map(|((section, rule), usage)| {
                let why = match usage {
                    RuleUsageStatus::Unmatched => "matches no path",
                    RuleUsageStatus::Hidden if !section.exclusions.is_empty() => {
                        "is hidden by exclusions or later rules"
                    }
                    RuleUsageStatus::Hidden => "is hidden by later rules",
                    RuleUsageStatus::Used => return None,
                };
                Some(Warning { line: rule.line, message: format!("`{}` {why}", rule.text) })
            })
            .collect();
        warnings.sort_by_key(|warning| warning.line);
        warnings
    }
}

/// Updates the effects of a section's rules for one path. Returns whether the path has owners in
/// the section.
fn see(section: &Section, path: &str, usage: &mut [RuleUsageStatus]) -> bool {
    let (rules, exclusions) = usage.split_at_mut(section.rules.len());
    let mut decided = false;
    for (rule, usage) in section.exclusions.iter().zip(exclusions) {
        if (!decided || *usage != RuleUsageStatus::Used) && rule.pattern.matches(path) {
            *usage = RuleUsageStatus::Used;
            decided = true;
        }
    }
    let mut owned = false;
    for (rule, usage) in section.rules.iter().zip(rules).rev() {
        // A rule that cannot decide this path is tested only if it has not matched any path yet.
        if (decided && *usage != RuleUsageStatus::Unmatched) || !rule.pattern.matches(path) {
            continue;
        }
        if decided {
            *usage = RuleUsageStatus::Hidden;
        } else {
            *usage = RuleUsageStatus::Used;
            decided = true;
            owned = !rule.owners.is_empty();
        }
    }
    owned
}

fn letter(usage: RuleUsageStatus) -> char {
    match usage {
        RuleUsageStatus::Unmatched => '.',
        RuleUsageStatus::Hidden => 'h',
        RuleUsageStatus::Used => 'u',
    }
}

fn usage(letter: char) -> RuleUsageStatus {
    match letter {
        'u' => RuleUsageStatus::Used,
        'h' => RuleUsageStatus::Hidden,
        _ => RuleUsageStatus::Unmatched,
    }
}

/// Returns warnings about rules that a later rule of their section always overrides: one with the
/// same pattern, or one that matches every path.
pub(crate) fn hidden_for_sure(file: &Codeowners) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for section in &file.sections {
        let mut later: BTreeMap<&str, u32> = BTreeMap::new();
        let mut catch_all = None;
        for rule in section.rules.iter().rev() {
            if let Some(line) = catch_all.or_else(|| later.get(rule.text.as_str()).copied()) {
                warnings.push(hidden(rule, line));
            }
            later.entry(&rule.text).or_insert(rule.line);
            catch_all = catch_all.or_else(|| rule.pattern.is_catch_all().then_some(rule.line));
        }
    }
    warnings.sort_by_key(|warning| warning.line);
    warnings
}

fn hidden(rule: &Rule, by: u32) -> Warning {
    Warning { line: rule.line, message: format!("`{}` is hidden by line {by}", rule.text) }
}
