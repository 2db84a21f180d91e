//! Matches observations with stored findings by identity, and creates findings for the others.

use std::collections::BTreeMap;

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::chunk;
use super::coverage::AnalysisGroupCoverage;
use super::events::{self, ChangedFinding, FindingsCreated, FindingsReopened};
use super::suppression::SuppressionReporters;
use super::{FindingImportJob, ImportStep, equals, former};
use crate::finding::{Finding, ObservationSource};
use crate::matching::{self, NewFinding};
use crate::observation::ResultObservation;
use crate::similarity::{StoredTextFingerprint, TextFingerprint};
use crate::state::{Actor, FindingState};
use crate::transition::{PendingTransition, StoredTransition, pass};

/// Matches the observations of one chunk with stored findings. Returns the next step of the job.
pub(super) fn step(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    at: u32,
) -> Result<ImportStep, JobError> {
    if at >= job.chunks {
        return Ok(ImportStep::Gone { part: 0, cursor: None, left: 0 });
    }
    let mut chunk = chunk::take(ctx, job.audit.audit_id, at)?;
    let mut observations = std::mem::take(&mut chunk.observations);
    let mut known = known(ctx, observations.iter().map(|one| &one.identity))?;
    let mut outcome = FindingWrites::default();
    let surroundings = job.surroundings()?.clone();
    let branch_ref = job.branch()?;
    let Some(part) = job.parts.get(chunk.part) else {
        return Err(JobError::Fail("a chunk of no analysis".to_owned()));
    };
    let sighting = ObservationSource {
        repository_id: job.audit.repository_id,
        audit_id: job.audit.audit_id,
        seen_at: job.audit.started_at,
        branch_ref: &branch_ref,
        commit_sha: chunk.commit_sha.as_deref(),
        analysis_id: &part.analysis_id,
        group_id: &part.group_id,
        analysis_run: part.run,
        ready_at: chunk.ready_at,
        evidence_ids: &chunk.evidence_ids,
        surroundings: &surroundings,
    };
    equals::assign(ctx, job, &sighting, &mut observations, &mut known)?;
    former::adopt(ctx, &observations, &mut known)?;
    former::adopt_weaker(ctx, job, &sighting, &observations, &mut known)?;
    let siblings = AnalysisGroupCoverage::of_siblings(ctx, job, part)?;
    let reporting = SuppressionReporters::read(ctx, &sighting, &observations, &known)?;
    let mut kept_open = 0;
    for observation in observations {
        let record = observation.record;
        let sighting = sighting.of_record(record.as_ref());
        match known.remove(&observation.identity) {
            Some(finding) if is_outdated(&finding, sighting.ready_at, &siblings) => {
                outcome.outdated += 1;
            }
            Some(finding) => {
                kept_open += u64::from(is_kept_open(&finding, &sighting, &siblings));
                again(ctx, &sighting, &reporting, finding, observation, &mut outcome)?;
            }
            None => first(ctx, &sighting, observation, &mut outcome),
        }
    }
    outcome.each_finding().for_each(|finding| siblings.note_overlooked(finding));
    outcome.keep(ctx, job)?;
    job.parts[chunk.part].kept_open += kept_open;
    Ok(ImportStep::Apply { chunk: at + 1 })
}

/// Whether the file of an observation is outdated: a newer run checked for the finding and did not
/// report it. If the time of that run was not stored, the coverage of this audit's runs decides.
fn is_outdated(finding: &Finding, ready_at: Timestamp, siblings: &AnalysisGroupCoverage) -> bool {
    let gone = finding.was_gone_at(ready_at);
    gone.unwrap_or_else(|| siblings.looked_after(ready_at, finding))
}

/// Whether only the observation's file, which an earlier audit imported, keeps the finding open: a
/// newer run in another file checked the finding's paths and did not report it.
fn is_kept_open(
    finding: &Finding,
    sighting: &ObservationSource<'_>,
    siblings: &AnalysisGroupCoverage,
) -> bool {
    let is_of_earlier_audit =
        finding.shown_at == Some(sighting.ready_at) && finding.audit_id != sighting.audit_id;
    finding.open && is_of_earlier_audit && siblings.looked_after(sighting.ready_at, finding)
}

/// Returns the stored findings with these identities, by identity.
pub(super) fn known<'a>(
    ctx: &JobCtx,
    identities: impl ExactSizeIterator<Item = &'a String>,
) -> Result<BTreeMap<String, Stored<Finding>>, JobError> {
    let most = u32::try_from(identities.len()).unwrap_or(u32::MAX);
    let query = ctx.documents::<Finding>().query().one_of("identity_fingerprint", identities);
    // Ordered like the index; otherwise SQLite scans all findings by id.
    let found = query.ascending("identity_fingerprint").limit(most).list()?.into_iter();
    Ok(found.map(|finding| (finding.identity_fingerprint.clone(), finding)).collect())
}

/// Changes of findings that a job step collects and writes at its end. Queries after a write would
/// hold the write lock longer.
#[derive(Default)]
struct FindingWrites {
    new: Vec<NewFinding>,
    again: Vec<Stored<Finding>>,
    seen: i64,
    outdated: i64,
    transitions: Vec<StoredTransition>,
    reopened: Vec<ChangedFinding>,
}

impl FindingWrites {
    fn keep(self, ctx: &JobCtx, job: &mut FindingImportJob) -> Result<(), JobError> {
        let (audit_id, repository_id) = (job.audit.audit_id, job.audit.repository_id);
        let made = &mut job.tally.suggestions;
        let suggestions = matching::suggestions(ctx, repository_id, &self.new, made)?;
        let suggestions = suggestions.iter().map(|one| (ctx.new_id(), one));
        ctx.documents().create_all(suggestions)?;
        for mut finding in self.again {
            ctx.documents().replace(&mut finding)?;
        }
        let findings = self.new.iter().map(|one| (one.id, &one.finding));
        ctx.documents::<Finding>().create_all(findings)?;
        let sketches = self.new.iter().map(|one| (one.id, &one.sketch));
        ctx.documents::<StoredTextFingerprint>().create_all(sketches)?;
        let transitions = self.transitions.iter().map(|one| (one.record.id, one));
        ctx.documents::<StoredTransition>().create_all(transitions)?;
        job.tally.seen += self.seen;
        job.tally.outdated += self.outdated;
        job.tally.new += i64::try_from(self.new.len()).unwrap_or_default();
        job.tally.reopened += i64::try_from(self.reopened.len()).unwrap_or_default();
        let created = self.new.iter().map(|one| ChangedFinding::of(one.id, &one.finding)).collect();
        events::publish(ctx, audit_id, repository_id, created, FindingsCreated);
        events::publish(ctx, audit_id, repository_id, self.reopened, FindingsReopened);
        Ok(())
    }

    fn each_finding(&mut self) -> impl Iterator<Item = &mut Finding> {
        let new = self.new.iter_mut().map(|one| &mut one.finding);
        new.chain(self.again.iter_mut().map(|one| &mut one.value))
    }

    fn add(&mut self, ctx: &JobCtx, id: Uuid, finding: &mut Finding, change: PendingTransition) {
        let suppressed = change.to == FindingState::FalsePositive;
        self.transitions.push(pass(ctx, id, finding, change));
        finding.suppressed = suppressed;
    }
}

fn first(
    ctx: &JobCtx,
    sighting: &ObservationSource<'_>,
    observation: ResultObservation,
    outcome: &mut FindingWrites,
) {
    let id = ctx.new_id();
    let suppressed = observation.suppressed.clone();
    let sketch = StoredTextFingerprint { sketch: observation.sketch.clone() };
    let mut finding = Finding::first_seen(observation, sighting);
    let change = |to, reason: &str| {
        PendingTransition::by_audit(to, sighting.audit_id, reason, sighting.evidence_ids)
    };
    outcome.add(ctx, id, &mut finding, change(FindingState::New, "Reported for the first time."));
    if let Some(reason) = suppressed {
        outcome.add(ctx, id, &mut finding, change(FindingState::FalsePositive, &reason));
    }
    outcome.seen += 1;
    outcome.new.push(NewFinding { id, finding, sketch });
}

fn again(
    ctx: &JobCtx,
    sighting: &ObservationSource<'_>,
    reporting: &SuppressionReporters,
    mut finding: Stored<Finding>,
    observation: ResultObservation,
    outcome: &mut FindingWrites,
) -> Result<(), JobError> {
    let id = finding.uuid();
    // Another analysis of this audit may already have reported the finding.
    outcome.seen += i64::from(finding.audit_id != sighting.audit_id);
    let suppressed = observation.suppressed.clone();
    let sketch = observation.sketch.clone();
    let before = finding.signature.clone();
    finding.seen_again(observation, sighting);
    if finding.signature != before {
        keep_sketch(ctx, id, sketch)?;
    }
    let settled = reporting.all_suppress(&finding, sighting.analysis_id);
    if let Some((to, reason)) = consequence(&finding, suppressed.as_deref(), settled, sighting) {
        let change =
            PendingTransition::by_audit(to, sighting.audit_id, reason, sighting.evidence_ids);
        outcome.add(ctx, id, &mut finding, change);
        if to == FindingState::Reopened {
            outcome.reopened.push(ChangedFinding::of(id, &finding));
        }
    }
    outcome.again.push(finding);
    Ok(())
}

/// Replaces the stored text sketch of a finding.
fn keep_sketch(ctx: &JobCtx, id: Uuid, sketch: TextFingerprint) -> Result<(), JobError> {
    if let Some(mut kept) = ctx.documents::<StoredTextFingerprint>().find(id)? {
        kept.sketch = sketch;
        ctx.documents().replace(&mut kept)?;
    }
    Ok(())
}

/// Returns the state to which an observation changes the finding, and the reason; `None` for no
/// change. `settled` is whether all analyses that report the finding suppress it. Evidence from
/// before a user's decision does not contradict that decision.
fn consequence<'a>(
    finding: &Finding,
    suppressed: Option<&'a str>,
    settled: bool,
    sighting: &ObservationSource<'_>,
) -> Option<(FindingState, &'a str)> {
    let is_newer = sighting.ready_at > finding.lifecycle_updated_at;
    let wanted = match (finding.state, suppressed.filter(|_| settled)) {
        (_, Some(reason)) if finding.auto_disposition || is_newer => {
            Some((FindingState::FalsePositive, reason))
        }
        (FindingState::Verified, _) => Some((FindingState::Reopened, "Seen again.")),
        (FindingState::Remediated, _) if is_newer => {
            Some((FindingState::Reopened, "Reported by a scan after the remediation."))
        }
        (FindingState::FalsePositive, _) if finding.suppressed && !settled => {
            Some((FindingState::Reopened, "The scan does not suppress it any more."))
        }
        _ => None,
    };
    wanted.filter(|(to, _)| finding.state.next(Actor::Service).contains(to))
}
