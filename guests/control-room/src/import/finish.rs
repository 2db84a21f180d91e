//! Last step of an import: publishes its results for the audit and for predicates.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{DocumentError, JobError, Query, Value};
use serde_json::{Map, json};

use super::events::{FindingsImported, ImportStatus};
use super::{AuditImportMarker, FindingImportJob, ImportCounts, MOST_REPORTED, coverage, limits};
use crate::finding::Finding;
use crate::severity::Severity;

/// Warning of an audit without facts about findings.
const NO_FACTS: &str = "The audit has no facts about findings, because a scan failed or could not \
                        be read. Predicates with `findings` fail. Upload a successful scan with \
                        the same filename.";

/// Maximum size of all rule ids in the fact `by_rule`, in bytes. An event has at most 1 MiB.
const MAX_RULE_BYTES: usize = 384 * 1024;

/// Publishes the result of the import, stores its limitations, and marks the import as finished.
pub(super) fn step(ctx: &JobCtx, job: &FindingImportJob) -> Result<(), JobError> {
    let warnings = limits::warnings(job);
    let tally = &job.tally;
    let status = if tally.imported == 0 && tally.refused > 0 && tally.seen == 0 {
        ImportStatus::Failed
    } else {
        ImportStatus::Succeeded
    };
    let facts = facts(ctx, job.audit.repository_id, tally)?;
    let mut reported = reported(&warnings, tally, facts.contains_key("by_rule"));
    if status == ImportStatus::Succeeded && tally.refused + tally.failed > 0 {
        reported.push(NO_FACTS.to_owned());
    }
    let suggestions: usize = tally.suggestions.values().sum();
    ctx.publish(FindingsImported {
        audit_id: job.audit.audit_id,
        status,
        counts: BTreeMap::from([
            ("runs", tally.imported),
            ("refused", tally.refused),
            ("failed", tally.failed),
            ("superseded", tally.superseded),
            ("outdated", tally.outdated),
            ("seen", tally.seen),
            ("new", tally.new),
            ("reopened", tally.reopened),
            ("gone", tally.gone),
            ("match_suggestions", i64::try_from(suggestions).unwrap_or_default()),
        ]),
        warnings: reported,
        facts,
        errors: tally.errors.clone(),
    });
    limits::keep(ctx, job, &warnings)?;
    coverage::delete(ctx, job)?;
    if let Some(mut import) = ctx.documents::<AuditImportMarker>().find(job.audit.audit_id)? {
        import.finished_at = Some(ctx.now());
        ctx.documents().replace(&mut import)?;
    }
    Ok(())
}

/// Returns the warnings that the event reports: the first ones, and what the event omits (numbers
/// of further warnings and errors, the fact `by_rule`).
fn reported(warnings: &[String], tally: &ImportCounts, has_rules: bool) -> Vec<String> {
    let mut reported: Vec<String> = warnings.iter().take(MOST_REPORTED).cloned().collect();
    let omitted = warnings.len() - reported.len() + tally.more_warnings;
    for (more, what) in [(omitted, "warnings"), (tally.more_errors, "errors")] {
        if more > 0 {
            reported.push(format!("{more} more {what} are not reported."));
        }
    }
    if tally.absolute_paths > 0 {
        reported.push(format!(
            "Results with an absolute path that is below no root in their run: {}. They become new \
             findings when the folder of the checkout changes, and CODEOWNERS does not match them. \
             Write relative paths, or `versionControlProvenance[].mappedTo`.",
            tally.absolute_paths
        ));
    }
    if !has_rules {
        let text = "The open findings have too many rules for `findings.by_rule`, so predicates \
                    with it fail. Use `findings.by_severity` in them.";
        reported.push(text.to_owned());
    }
    reported
}

/// Returns the facts about findings for predicates: counts of the repository's findings after the
/// audit, and of the audit's changes.
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
    let mut facts = json!({
        "total": total,
        "open": by_severity.values().sum::<u64>(),
        "new": tally.new,
        "reopened": tally.reopened,
        "gone": tally.gone,
        "by_severity": by_severity,
    });
    if let Some(by_rule) = by_rule(open())? {
        facts["by_rule"] = json!(by_rule);
    }
    Ok(facts.as_object().cloned().unwrap_or_default())
}

/// Returns the number of findings of each rule; `None` if there are too many rules. For predicates,
/// a part of them would mean that the other rules have no findings.
fn by_rule(findings: Query<'_, Finding>) -> Result<Option<BTreeMap<String, u64>>, DocumentError> {
    let groups = match findings.count_by(&["rule_id"]) {
        Err(DocumentError::LimitExceeded) => return Ok(None),
        groups => groups?,
    };
    let by_rule: BTreeMap<String, u64> = named(groups).collect();
    let bytes: usize = by_rule.keys().map(String::len).sum();
    Ok((bytes <= MAX_RULE_BYTES).then_some(by_rule))
}

fn named(groups: Vec<(Vec<Value>, u64)>) -> impl Iterator<Item = (String, u64)> {
    groups.into_iter().filter_map(|(mut values, count)| match values.pop() {
        Some(Value::Text(name)) => Some((name, count)),
        _ => None,
    })
}
