//! Advisories that could not be compared with a component. They are reported as one limitation for
//! each cause.

use std::collections::BTreeMap;

use area_sdk::prelude::*;

use crate::ecosystem::Package;
use crate::osv::evaluate::{ComparisonObstacle, Verdict};

/// Maximum number of advisory ids that one limitation names.
pub(super) const EXAMPLES: usize = 3;

/// Advisories that could not be compared with one component, counted by cause.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct UndecidedAdvisories {
    /// Advisory whose `affected` entries are being compared with the component.
    current: Option<AdvisoryVerdictAccumulator>,
    causes: BTreeMap<ComparisonObstacle, UndecidedCauseCount>,
}

/// An advisory, with the combined verdict of its entries so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct AdvisoryVerdictAccumulator {
    advisory_id: String,
    affects: bool,
    answered: bool,
    obstacle: Option<ComparisonObstacle>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct UndecidedCauseCount {
    advisories: usize,
    examples: Vec<String>,
}

impl UndecidedAdvisories {
    /// Adds the verdict on one `affected` entry of an advisory. The caller passes the entries of
    /// one advisory one after another.
    pub(super) fn note(&mut self, advisory_id: &str, verdict: &Verdict) {
        if self.current.as_ref().is_none_or(|open| open.advisory_id != advisory_id) {
            self.close();
        }
        let open = self.current.get_or_insert_with(|| AdvisoryVerdictAccumulator {
            advisory_id: advisory_id.to_owned(),
            ..AdvisoryVerdictAccumulator::default()
        });
        open.affects |= verdict.ground.is_some();
        open.answered |= verdict.answered;
        open.obstacle = open.obstacle.max(verdict.obstacle);
    }

    /// Counts the current advisory as undecided if an entry could not be compared and none affects
    /// the component. A range of commits, and an entry without ranges, do not count if other ranges
    /// or versions could be compared.
    fn close(&mut self) {
        let Some(open) = self.current.take() else { return };
        let Some(obstacle) = open.obstacle.filter(|_| !open.affects) else { return };
        let is_silent =
            matches!(obstacle, ComparisonObstacle::Commits | ComparisonObstacle::NoRanges);
        if is_silent && open.answered {
            return;
        }
        let cause = self.causes.entry(obstacle).or_default();
        cause.advisories += 1;
        if cause.examples.len() < EXAMPLES {
            cause.examples.push(open.advisory_id);
        }
    }

    /// Returns the limitations of the component about undecided advisories, one for each cause.
    pub(super) fn limitations(mut self, package: &Package) -> Vec<String> {
        self.close();
        let causes = self.causes.into_iter();
        causes.map(|(obstacle, cause)| cause.limitation(&because(obstacle, package))).collect()
    }
}

impl UndecidedCauseCount {
    fn limitation(self, because: &str) -> String {
        let what = if self.advisories == 1 { "advisory" } else { "advisories" };
        let count = self.advisories;
        let rest = match count.saturating_sub(self.examples.len()) {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        let examples = self.examples.join(", ");
        format!("{count} {what} cannot be {because}: {examples}{rest}.")
    }
}

fn because(obstacle: ComparisonObstacle, package: &Package) -> String {
    let ecosystem = &package.ecosystem;
    match obstacle {
        ComparisonObstacle::NoRanges => {
            "compared because neither ranges nor versions are given".to_owned()
        }
        ComparisonObstacle::NoVersion => "compared because the component has no version".to_owned(),
        ComparisonObstacle::Commits => {
            "compared because only ranges of commits are given".to_owned()
        }
        ComparisonObstacle::OtherCase => {
            "applied because the paths of the Go modules differ in upper and lower case".to_owned()
        }
        ComparisonObstacle::TooManyEvents => {
            "compared because a range has more than 1,000 events; split the range".to_owned()
        }
        ComparisonObstacle::NoOrder => {
            format!("compared because the order of {ecosystem} versions is not known")
        }
        ComparisonObstacle::Unreadable => {
            let version = package.version.as_deref().unwrap_or_default();
            format!(
                "compared because version {version:?} or a bound of the range is not a version \
                 of {ecosystem}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osv::evaluate::AffectedReason;

    fn obstacle(obstacle: ComparisonObstacle) -> Verdict {
        Verdict { obstacle: Some(obstacle), ..Verdict::default() }
    }

    fn limitations(entries: &[(&str, Verdict)]) -> Vec<String> {
        let mut doubts = UndecidedAdvisories::default();
        for (advisory_id, verdict) in entries {
            doubts.note(advisory_id, verdict);
        }
        doubts.limitations(&Package::of_osv("npm", "a").at("next"))
    }

    #[test]
    fn commits_are_passed_over_where_another_entry_of_the_advisory_answers() {
        let commits = obstacle(ComparisonObstacle::Commits);
        let no = Verdict { answered: true, ..Verdict::default() };
        assert_eq!(limitations(&[("A", no), ("A", commits)]), [""; 0]);
        assert_eq!(limitations(&[("A", commits), ("A", no)]), [""; 0]);
        assert_eq!(
            limitations(&[("A", no), ("B", commits)]),
            ["1 advisory cannot be compared because only ranges of commits are given: B."]
        );
    }

    #[test]
    fn a_version_that_no_range_can_place_is_open_though_another_range_answers() {
        let some = Verdict { answered: true, ..obstacle(ComparisonObstacle::Unreadable) };
        assert_eq!(
            limitations(&[("A", some)]),
            ["1 advisory cannot be compared because version \"next\" or a bound of the range is \
              not a version of npm: A."]
        );
        let ground = Some(AffectedReason::Listed);
        let affected = Verdict { ground, answered: true, obstacle: None };
        assert_eq!(limitations(&[("A", some), ("A", affected)]), [""; 0]);
    }

    #[test]
    fn a_cause_is_told_once_with_its_count() {
        let none = obstacle(ComparisonObstacle::NoVersion);
        let entries: Vec<_> = ["A", "B", "B", "C", "D", "E"].map(|id| (id, none)).into();
        assert_eq!(
            limitations(&entries),
            ["5 advisories cannot be compared because the component has no version: A, B, C and \
              2 more."]
        );
    }
}
