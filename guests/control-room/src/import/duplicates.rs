//! Reopens duplicates of verified findings that scans still report, because nobody would see them.
//! Runs after the check of all analyses: before it, a duplicate that is gone too counts as
//! reported.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::{JobError, Value};

use super::events::{self, ChangedFinding, FindingsReopened};
use super::{FindingImportJob, ImportStep};
use crate::finding::Finding;
use crate::state::FindingState;
use crate::transition::{PendingTransition, StoredTransition, pass};

/// Maximum number of duplicate findings that one job step checks.
const STEP: u32 = 200;

/// Checks the workspace's next duplicates and reopens those that hide a problem. Returns the next
/// step of the job.
pub(super) fn step(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    cursor: Option<String>,
) -> Result<ImportStep, JobError> {
    let all = ctx.documents::<Finding>().query().equals("present", true);
    let all = all.range("duplicate_of", Some(Value::Text(String::new())), None);
    let page = all.ascending("duplicate_of").limit(STEP).cursor(cursor).page()?;
    let next = page.next_cursor;
    let verified = verified(ctx, &page.items)?;
    let mut hidden = page.items;
    hidden.retain(|duplicate| is_hidden(duplicate, &verified));
    reopen(ctx, job, hidden)?;
    Ok(match next {
        Some(_) => ImportStep::Duplicates { cursor: next },
        None => ImportStep::Finish,
    })
}

/// Returns the ids of the verified originals of these duplicates, each with the time of its
/// verification.
fn verified(
    ctx: &JobCtx,
    duplicates: &[Stored<Finding>],
) -> Result<BTreeMap<Uuid, Timestamp>, JobError> {
    let mut originals: Vec<Uuid> = duplicates.iter().filter_map(|one| one.duplicate_of).collect();
    originals.dedup();
    let originals = ctx.documents::<Finding>().get_many(originals)?.into_iter();
    let verified = originals.filter(|original| original.state == FindingState::Verified);
    Ok(verified.map(|original| (original.uuid(), original.lifecycle_updated_at)).collect())
}

/// Whether the original finding was verified after a user declared this finding its duplicate, so
/// that nobody would see what scans still report.
fn is_hidden(duplicate: &Finding, verified: &BTreeMap<Uuid, Timestamp>) -> bool {
    let verified_at = duplicate.duplicate_of.and_then(|original| verified.get(&original));
    duplicate.state == FindingState::Duplicate
        && verified_at.is_some_and(|at| *at > duplicate.lifecycle_updated_at)
}

fn reopen(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    mut duplicates: Vec<Stored<Finding>>,
) -> Result<(), JobError> {
    let mut transitions: Vec<StoredTransition> = Vec::new();
    let mut reopened: BTreeMap<Uuid, Vec<ChangedFinding>> = BTreeMap::new();
    for finding in &mut duplicates {
        let reason = "The finding that it duplicates is verified, and scans still report this.";
        let change =
            PendingTransition::by_audit(FindingState::Reopened, job.audit.audit_id, reason, &[]);
        let id = finding.uuid();
        transitions.push(pass(ctx, id, finding, change));
        let of_repository = reopened.entry(finding.repository_id).or_default();
        of_repository.push(ChangedFinding::of(id, finding));
    }
    ctx.documents().replace_all(&duplicates)?;
    let records = transitions.iter().map(|one| (one.record.id, one));
    ctx.documents::<StoredTransition>().create_all(records)?;
    let own = reopened.get(&job.audit.repository_id).map_or(0, Vec::len);
    job.tally.reopened += i64::try_from(own).unwrap_or_default();
    for (repository_id, findings) in reopened {
        events::publish(ctx, job.audit.audit_id, repository_id, findings, FindingsReopened);
    }
    Ok(())
}
