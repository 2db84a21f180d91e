//! What is gone: shown by an analysis before, and not by its latest run, which
//! ended well. A finding that another analysis (of another category, or branch)
//! still shows stays, and belongs to that one from now on.

use std::collections::BTreeMap;

use area_sdk::JobError;
use area_sdk::Value;
use area_sdk::prelude::*;

use super::analysis::{self, Analysis};
use super::events::{self, Told};
use super::{ImportFindings, Part, Step};
use crate::finding::Finding;
use crate::state::{Mover, State};
use crate::transition::{Change, StoredTransition, pass};

/// Findings of one step.
const STEP: u32 = 200;

/// Looks at the next findings that a part's run did not show.
pub(super) fn step(ctx: &JobCtx, job: &mut ImportFindings, at: usize) -> Result<Step, JobError> {
    let Some(part) = job.parts.get(at).cloned() else { return Ok(Step::Finish) };
    if !part.successful {
        return Ok(Step::Gone { part: at + 1 });
    }
    let missed = ctx.documents::<Finding>().query();
    let missed = missed.equals("analysis_id", &part.analysis_id).equals("present", true);
    let missed = missed.range("analysis_run", None, Some(Value::Integer(part.run)));
    let missed = missed.ascending("analysis_run").limit(STEP).list()?;
    if missed.is_empty() {
        analysis::settle(ctx, &part)?;
        return Ok(Step::Gone { part: at + 1 });
    }
    let good_runs = good_runs(ctx, &missed)?;
    let mut transitions = Vec::new();
    let mut verified = Vec::new();
    for mut finding in missed {
        if !finding.handed_over(&good_runs) {
            finding.present = false;
            job.tally.gone += 1;
            if let Some(transition) = verify(ctx, job, &part, &mut finding) {
                verified.push(Told::of(finding.uuid(), &finding));
                transitions.push(transition);
            }
        }
        ctx.documents().replace(&mut finding)?;
    }
    let records = transitions.iter().map(|one| (one.record.id, one));
    ctx.documents::<StoredTransition>().create_all(records)?;
    events::verified(ctx, job.audit.audit_id, job.audit.repository_id, verified);
    Ok(Step::Gone { part: at })
}

/// The latest good runs of the other analyses that showed these.
fn good_runs(
    ctx: &JobCtx,
    findings: &[Stored<Finding>],
) -> Result<BTreeMap<String, i64>, JobError> {
    let mut others: Vec<&String> = findings.iter().flat_map(|one| one.also_seen.keys()).collect();
    others.sort_unstable();
    others.dedup();
    let analyses = ctx.documents::<Analysis>().get_many(others)?;
    Ok(analyses.into_iter().map(|kept| (kept.id.clone(), kept.good_run)).collect())
}

impl Finding {
    /// Gives it to another analysis that still shows it, where there is one.
    fn handed_over(&mut self, good_runs: &BTreeMap<String, i64>) -> bool {
        let shows =
            |(id, run): &(String, i64)| good_runs.get(id).is_some_and(|good_run| run >= good_run);
        let others = std::mem::take(&mut self.also_seen);
        let mut others: Vec<(String, i64)> = others.into_iter().filter(shows).collect();
        let Some((id, run)) = others.pop() else { return false };
        (self.analysis_id, self.analysis_run) = (id, run);
        self.also_seen = others.into_iter().collect();
        true
    }
}

/// An open finding that is gone is mended; what was decided of others stands.
fn verify(
    ctx: &JobCtx,
    job: &ImportFindings,
    part: &Part,
    finding: &mut Stored<Finding>,
) -> Option<StoredTransition> {
    if !finding.state.next(Mover::Service).contains(&State::Verified) {
        return None;
    }
    let reason = format!("{} ran without it.", part.tool);
    let change = Change::by_audit(State::Verified, job.audit.audit_id, &reason, &[]);
    let id = finding.uuid();
    Some(pass(ctx, id, finding, change))
}
