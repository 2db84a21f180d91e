//! Reads findings of the area `control_room`.

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope, Value};

/// A finding of the area `control_room`, with the members that this area reads.
#[derive(Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) open: bool,
    /// Version of the finding's lifecycle, incremented at each transition.
    pub(crate) version: i64,
    pub(crate) risk_severity: String,
    pub(crate) title: String,
    pub(crate) paths: Vec<String>,
    pub(crate) owner_id: Option<Uuid>,
    pub(crate) sla_due_at: Option<Timestamp>,
}

document!(Finding, "control_room.findings");

/// Number of findings in one page of a database query.
const STEP: u32 = 500;

/// Returns at most `most` open findings of a repository, and the total number of its open findings.
/// Unassigned findings come first, then those with the highest risk.
pub(crate) fn open(
    scope: &Scope,
    repository_id: Uuid,
    most: usize,
) -> Result<(Vec<Stored<Finding>>, u64), DocumentError> {
    let all = || {
        let findings = scope.documents::<Finding>().query();
        findings.equals("repository_id", repository_id).equals("open", true)
    };
    let total = all().count()?;
    let mut found = Vec::new();
    for assigned in [false, true] {
        let mut cursor = None;
        while found.len() < most {
            let some = if assigned { all() } else { all().equals("owner_id", Value::Null) };
            let page = some.descending("risk_rank").cursor(cursor).limit(STEP).page()?;
            let fitting = |finding: &Stored<Finding>| finding.owner_id.is_some() == assigned;
            found.extend(page.items.into_iter().filter(fitting));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
    }
    found.truncate(most);
    Ok((found, total))
}

/// Maximum number of findings whose paths are read.
pub(crate) const MOST_ASKED: usize = 5_000;

/// Returns the paths of a repository's findings, without duplicates, and whether these are the
/// paths of all findings.
pub(crate) fn paths(
    scope: &Scope,
    repository_id: Uuid,
) -> Result<(BTreeSet<String>, bool), DocumentError> {
    let mut paths = BTreeSet::new();
    let findings = scope.documents::<Finding>().query().equals("repository_id", repository_id);
    for (at, finding) in findings.limit(STEP).all().enumerate() {
        if at == MOST_ASKED {
            return Ok((paths, false));
        }
        paths.extend(finding?.value.paths);
    }
    Ok((paths, true))
}
