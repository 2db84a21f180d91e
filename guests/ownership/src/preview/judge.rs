//! Decides for one finding of a preview whether and to whom it is assigned.

use area_sdk::prelude::*;

use super::{PreviewedFinding, PreviewedFindingStatus};
use crate::codeowners::{Codeowners, from_root};
use crate::directory::OwnerDirectory;
use crate::findings::Finding;

/// Maximum number of a finding's paths whose owners are determined and returned.
pub(super) const MOST_PATHS: usize = 100;

/// Maximum number of owners that the reason of a preview item names.
const MOST_REASONS: usize = 3;

/// Owners of all paths of a finding, and the lines of the deciding rules.
#[derive(Default)]
struct FindingPathOwners {
    identities: Vec<String>,
    rule_lines: Vec<u32>,
}

impl FindingPathOwners {
    fn of(file: &Codeowners, paths: &[String]) -> Self {
        let mut claims = Self::default();
        for path in paths.iter().filter_map(|path| from_root(path)) {
            let owned = file.owned(path);
            claims.rule_lines.extend(owned.lines);
            for owner in owned.owners {
                if !claims.identities.iter().any(|known| known == owner) {
                    claims.identities.push(owner.to_owned());
                }
            }
        }
        claims.rule_lines.sort_unstable();
        claims.rule_lines.dedup();
        claims
    }
}

/// Decision about a finding: status, new assignee, and reason.
type AssignmentDecision = (PreviewedFindingStatus, Option<Uuid>, Option<String>);

/// Decides about one finding: returns its preview item.
pub(super) fn judge(
    finding: Stored<Finding>,
    file: Option<&Codeowners>,
    directory: &OwnerDirectory,
) -> PreviewedFinding {
    let finding_id = finding.uuid();
    let mut finding = finding.value;
    finding.paths.truncate(MOST_PATHS);
    let claims = file.map(|file| FindingPathOwners::of(file, &finding.paths)).unwrap_or_default();
    let (status, assignee_id, reason) = match unclaimed(&finding, file, &claims) {
        Some(reason) => without_owners(&finding, reason),
        None => among(&claims.identities, finding.owner_id, directory),
    };
    PreviewedFinding {
        assignee_id,
        collaboration_version: finding.version,
        current_assignee_id: finding.owner_id,
        due_at: finding.sla_due_at,
        finding_id,
        identities: claims.identities,
        paths: finding.paths,
        reason,
        rule_lines: claims.rule_lines,
        service_ids: directory.service_ids.clone(),
        severity: finding.risk_severity,
        status,
        title: finding.title,
    }
}

/// Returns the reason why a finding has no owners; `None` if it has owners.
fn unclaimed(
    finding: &Finding,
    file: Option<&Codeowners>,
    claims: &FindingPathOwners,
) -> Option<&'static str> {
    if !claims.identities.is_empty() {
        None
    } else if file.is_none() {
        Some("there are no ownership rules")
    } else if finding.paths.is_empty() {
        Some("the finding names no path")
    } else if claims.rule_lines.is_empty() {
        Some("no rule matches")
    } else {
        Some("the rule names no owners")
    }
}

/// Decides about a finding without owners: it keeps its assignee, or needs review if it has none.
fn without_owners(finding: &Finding, reason: &str) -> AssignmentDecision {
    let status = match finding.owner_id {
        Some(_) => PreviewedFindingStatus::Unchanged,
        None => PreviewedFindingStatus::NeedsReview,
    };
    (status, finding.owner_id, Some(reason.to_owned()))
}

/// Decides about a finding with owners: the first owner that resolves to a user becomes the
/// assignee, unless the current assignee is one of the owners.
fn among(
    identities: &[String],
    current: Option<Uuid>,
    directory: &OwnerDirectory,
) -> AssignmentDecision {
    let (mut assignee, mut reasons) = (None, Vec::new());
    for identity in identities {
        match directory.people(identity) {
            Ok(people) if current.is_some_and(|current| people.all.contains(&current)) => {
                return (PreviewedFindingStatus::Unchanged, current, None);
            }
            Ok(people) => assignee = assignee.or(Some(people.assignee)),
            Err(reason) => reasons.push(reason),
        }
    }
    if assignee.is_some() {
        return (PreviewedFindingStatus::Ready, assignee, None);
    }
    let beyond = reasons.len().saturating_sub(MOST_REASONS);
    reasons.truncate(MOST_REASONS);
    if beyond > 0 {
        reasons.push(format!("and {beyond} more"));
    }
    (PreviewedFindingStatus::NeedsReview, None, Some(reasons.join("; ")))
}
