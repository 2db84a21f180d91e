//! What is needed of the control room's findings.

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope, Value};

/// A finding.
#[derive(Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) open: bool,
    /// Of the lifecycle: one more at each transition.
    pub(crate) version: i64,
    pub(crate) risk_severity: String,
    pub(crate) title: String,
    pub(crate) paths: Vec<String>,
    pub(crate) owner_id: Option<Uuid>,
    pub(crate) sla_due_at: Option<Timestamp>,
}

impl Document for Finding {
    const COLLECTION: &'static str = "control_room.findings";
}

/// How many a question asks for.
const STEP: u32 = 500;

/// Open findings of a repository, those nobody is assigned to first, riskiest
/// first among each; at most so many, and how many there are in all.
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

/// How many findings are asked for their paths.
const MOST_ASKED: usize = 5_000;

/// The paths that a repository's findings name, each once.
pub(crate) fn paths(scope: &Scope, repository_id: Uuid) -> Result<BTreeSet<String>, DocumentError> {
    let mut paths = BTreeSet::new();
    let findings = scope.documents::<Finding>().query().equals("repository_id", repository_id);
    for finding in findings.limit(STEP).all().take(MOST_ASKED) {
        paths.extend(finding?.value.paths);
    }
    Ok(paths)
}
