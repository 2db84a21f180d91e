//! Parts of an audit: the results of other areas, which arrive in any order and at least once. The
//! audit ends when all parts have arrived.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, EventDelivery, Scope};
use serde_json::{Map, Value, json};

use super::document::{
    AreaAuditResult, AreaAuditResults, AuditState, ImportError, PartStatus, StoredAudit,
};
use super::events::{AuditCompleted, AuditEndPayload, AuditFailed};
use crate::schedules;

/// Maximum number of warnings, and of errors, that are stored for one part of an audit.
const MOST_KEPT: usize = 200;

/// Data of an event with which an area reports its part of an audit.
#[derive(Deserialize)]
struct AreaResultPayload {
    audit_id: Uuid,
    status: ImportStatus,
    #[serde(default)]
    counts: BTreeMap<String, i64>,
    #[serde(default)]
    facts: Map<String, Value>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    errors: Vec<ImportError>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ImportStatus {
    Succeeded,
    Failed,
}

type EventHandlerResult = JobResult<EventDelivery>;

pub(crate) fn findings(ctx: &JobCtx, event: EventDelivery) -> EventHandlerResult {
    take_in(ctx, &event, "findings", |parts| &mut parts.findings)
}

pub(crate) fn dependencies(ctx: &JobCtx, event: EventDelivery) -> EventHandlerResult {
    take_in(ctx, &event, "dependencies", |parts| &mut parts.dependencies)
}

pub(crate) fn ownership(ctx: &JobCtx, event: EventDelivery) -> EventHandlerResult {
    take_in(ctx, &event, "ownership", |parts| &mut parts.ownership)
}

/// Stores the result of one part of an audit. If two results arrive at the same time, the host runs
/// one of the calls again.
fn take_in(
    ctx: &JobCtx,
    event: &EventDelivery,
    name: &str,
    part: fn(&mut AreaAuditResults) -> &mut AreaAuditResult,
) -> EventHandlerResult {
    let imported: AreaResultPayload = event.data()?;
    let Some(mut audit) = ctx.documents::<StoredAudit>().find(imported.audit_id)? else {
        return Ok(Outcome::Done);
    };
    if part(&mut audit.parts).status != PartStatus::Pending {
        return Ok(Outcome::Done);
    }
    if imported.status == ImportStatus::Succeeded {
        audit.facts.insert(name.to_owned(), Value::Object(imported.supported_facts(name)));
    }
    *part(&mut audit.parts) = imported.into_part(event.occurred_at);
    if audit.parts.named().iter().all(|(_, part)| part.status != PartStatus::Pending) {
        finish(ctx, &mut audit)?;
    }
    ctx.documents().replace(&mut audit)?;
    Ok(Outcome::Done)
}

impl AreaResultPayload {
    /// Returns the facts of a part of an audit; none if nothing supports them, if files were
    /// refused, or if scans failed. For predicates, zero would mean that something was checked and
    /// is clean.
    fn supported_facts(&self, part: &str) -> Map<String, Value> {
        let count = |name: &str| self.counts.get(name).copied();
        let is_zero = |name: &str| count(name) == Some(0);
        let is_partial = count("refused").max(count("failed")) > Some(0);
        let is_unread = match part {
            // No scan, and no finding of an earlier one.
            "findings" => is_zero("runs") && self.facts.get("total") == Some(&json!(0)),
            // No SBOM and no inventory of an earlier one.
            "dependencies" => is_zero("sboms") && is_zero("components"),
            _ => false,
        };
        if is_unread || is_partial {
            return Map::new();
        }
        let mut facts = self.facts.clone();
        if part == "ownership" && is_zero("paths") {
            facts.remove("unowned");
        }
        facts
    }

    fn into_part(mut self, completed_at: Timestamp) -> AreaAuditResult {
        let beyond = |length: usize| length.saturating_sub(MOST_KEPT);
        let (warnings, errors) = (beyond(self.warnings.len()), beyond(self.errors.len()));
        self.warnings.truncate(MOST_KEPT);
        self.errors.truncate(MOST_KEPT);
        for (beyond, what) in [(warnings, "warnings"), (errors, "errors")] {
            if beyond > 0 {
                self.warnings.push(format!("{beyond} more {what} are not stored."));
            }
        }
        AreaAuditResult {
            status: match self.status {
                ImportStatus::Succeeded => PartStatus::Succeeded,
                ImportStatus::Failed => PartStatus::Failed,
            },
            completed_at: Some(completed_at),
            counts: self.counts,
            warnings: self.warnings,
            errors: self.errors,
        }
    }
}

/// Ends an audit whose parts have all arrived or are late. Sets the result and publishes the event;
/// the caller stores the audit.
pub(crate) fn finish(scope: &Scope, audit: &mut Stored<StoredAudit>) -> Result<(), DocumentError> {
    audit.completed_at = Some(scope.now());
    let of_parts = warnings(&audit.parts);
    audit.warnings.extend(of_parts);
    audit.error_code = error_code(&audit.parts).map(ToOwned::to_owned);
    let facts = json!({
        "id": audit.id,
        "repository_id": audit.target.repository_id,
        "branch_ref": audit.target.branch_ref,
        "commit_sha": audit.target.commit_sha,
    });
    audit.facts.insert("audit".to_owned(), facts);
    if audit.error_code.is_some() {
        audit.state = AuditState::Failed;
        scope.publish(AuditFailed(AuditEndPayload::of(audit)));
    } else {
        audit.state = AuditState::Completed;
        scope.publish(AuditCompleted(AuditEndPayload::of(audit)));
    }
    schedules::note_end(scope, audit)
}

/// Returns the error code of an audit with these parts; `None` if the audit has not failed.
fn error_code(parts: &AreaAuditResults) -> Option<&'static str> {
    let named = parts.named();
    if named.iter().all(|(_, part)| part.status != PartStatus::Succeeded) {
        Some("nothing_imported")
    } else if parts.findings.status == PartStatus::Failed {
        Some("findings_failed")
    } else {
        None
    }
}

fn warnings(parts: &AreaAuditResults) -> Vec<String> {
    let warning = |(name, part): &(&str, &AreaAuditResult)| match part.status {
        PartStatus::Missing => Some(format!("The {name} were not imported in time.")),
        PartStatus::Failed => Some(format!("The {name} could not be imported.")),
        PartStatus::Pending | PartStatus::Succeeded if part.errors.is_empty() => None,
        PartStatus::Pending | PartStatus::Succeeded => {
            Some(format!("{} artifacts of the {name} could not be imported.", part.errors.len()))
        }
    };
    parts.named().iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_that_nothing_supports_are_left_out() {
        let facts = |part, counts: Value, facts: Value| {
            let result = json!({
                "audit_id": Uuid::from_u128(1), "status": "succeeded", "counts": counts,
                "facts": facts,
            });
            let result: AreaResultPayload = serde_json::from_value(result).expect("a result");
            Value::Object(result.supported_facts(part))
        };
        let (none, some) = (json!({ "total": 0 }), json!({ "total": 2 }));
        let owned = json!({ "paths": 0, "unowned": 0 });
        assert_eq!(facts("ownership", json!({ "paths": 0 }), owned), json!({ "paths": 0 }));
        for (part, counts, given, is_kept) in [
            ("findings", json!({ "runs": 0 }), &none, false),
            ("findings", json!({ "runs": 1 }), &none, true),
            ("findings", json!({ "runs": 0 }), &some, true),
            ("findings", json!({ "runs": 1, "refused": 0, "failed": 1 }), &some, false),
            ("findings", json!({ "runs": 1, "refused": 1, "failed": 0 }), &some, false),
            ("dependencies", json!({ "sboms": 0, "components": 0 }), &none, false),
            ("dependencies", json!({ "sboms": 0, "components": 2, "refused": 0 }), &some, true),
            ("dependencies", json!({ "sboms": 1, "components": 0, "refused": 0 }), &none, true),
            ("dependencies", json!({ "sboms": 1, "components": 2, "refused": 1 }), &some, false),
        ] {
            let expected = if is_kept { given.clone() } else { json!({}) };
            assert_eq!(facts(part, counts.clone(), given.clone()), expected, "{part} {counts}");
        }
    }
}
