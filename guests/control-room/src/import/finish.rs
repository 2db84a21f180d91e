//! Last step of an import: publishes its results for the audit and for predicates.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{DocumentError, JobError, Value};
use serde_json::{Map, json};

use super::events::{FindingsImported, ImportStatus};
use super::{ImportCounts, ImportFindings, ImportMarker, coverage, limits};
use crate::finding::Finding;
use crate::severity::Severity;

/// Maximum number of warnings, and of errors, in the event. An audit stores 200; the others are
/// counted in further warnings.
const MOST_REPORTED: usize = 190;

/// Publishes the counts of the import, stores its limitations, and marks the import as finished.
pub(super) fn step(ctx: &JobCtx, job: &ImportFindings) -> Result<(), JobError> {
    let warnings = limits::warnings(job);
    let tally = &job.tally;
    let status = if tally.imported == 0 && tally.refused > 0 && tally.seen == 0 {
        ImportStatus::Failed
    } else {
        ImportStatus::Succeeded
    };
    let suggestions: usize = tally.suggestions.values().sum();
    ctx.publish(FindingsImported {
        audit_id: job.audit.audit_id,
        status,
        counts: BTreeMap::from([
            ("runs", tally.imported),
            ("refused", tally.refused),
            ("superseded", tally.superseded),
            ("outdated", tally.outdated),
            ("seen", tally.seen),
            ("new", tally.new),
            ("reopened", tally.reopened),
            ("gone", tally.gone),
            ("match_suggestions", i64::try_from(suggestions).unwrap_or_default()),
        ]),
        facts: facts(ctx, job.audit.repository_id, tally)?,
        warnings: reported(&warnings, tally.errors.len()),
        errors: tally.errors.iter().take(MOST_REPORTED).cloned().collect(),
    });
    limits::keep(ctx, job, &warnings)?;
    coverage::delete(ctx, job)?;
    if let Some(mut import) = ctx.documents::<ImportMarker>().find(job.audit.audit_id)? {
        import.finished_at = Some(ctx.now());
        ctx.documents().replace(&mut import)?;
    }
    Ok(())
}

/// Returns the first warnings, and the numbers of the warnings and errors that the event omits.
fn reported(warnings: &[String], errors: usize) -> Vec<String> {
    let mut reported: Vec<String> = warnings.iter().take(MOST_REPORTED).cloned().collect();
    for (all, what) in [(warnings.len(), "warnings"), (errors, "errors")] {
        let more = all.saturating_sub(MOST_REPORTED);
        if more > 0 {
            reported.push(format!("{more} more {what} are not reported."));
        }
    }
    reported
}

/// Returns the facts for predicates: counts of the repository's findings after the audit, and of
/// the audit's changes.
fn facts(
    ctx: &JobCtx,
    repository_id: Uuid,
    tally: &ImportCounts,
) -> Result<Map<String, serde_json::Value>, DocumentError> {
    let of_repository =
        || ctx.documents::<Finding>().query().equals("repository_id", repository_id);
    let total = of_repository().count()?;
    let open = || of_repository().equals("open", true);
    let mut by_severity: BTreeMap<String, u64> =
        Severity::ALL.iter().map(|severity| (name(severity), 0)).collect();
    by_severity.extend(named(open().count_by(&["risk_severity"])?));
    let by_rule: BTreeMap<String, u64> = named(open().count_by(&["rule_id"])?).collect();
    let facts = json!({
        "total": total,
        "open": by_severity.values().sum::<u64>(),
        "new": tally.new,
        "reopened": tally.reopened,
        "gone": tally.gone,
        "by_severity": by_severity,
        "by_rule": by_rule,
    });
    Ok(facts.as_object().cloned().unwrap_or_default())
}

fn named(groups: Vec<(Vec<Value>, u64)>) -> impl Iterator<Item = (String, u64)> {
    groups.into_iter().filter_map(|(mut values, count)| match values.pop() {
        Some(Value::Text(name)) => Some((name, count)),
        _ => None,
    })
}
