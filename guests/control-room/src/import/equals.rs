//! Assigns equal results of a file to stored findings by path, message and line.
//!
//! Results with the same key differ by their ordinal only. If one of them is fixed, or a new one is
//! before it in the file, the ordinals of the others change. So a result first takes the finding
//! that has its path, message and line, and then less similar ones. The others take what is left,
//! so that a moved file keeps its findings. A decision about a result that is gone applies only to
//! a result with the same path and message.

use std::collections::BTreeMap;

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::similar::{DIFFERENCES, EqualResult};
use super::{FindingImportJob, apply};
use crate::finding::{Finding, ObservationSource};
use crate::identity;
use crate::observation::ResultObservation;

/// Number of ordinals beyond those of the equal results in a file with which stored findings are
/// looked up.
const FURTHER: u64 = 32;
/// Maximum number of equal results that are compared with findings; further ones keep their
/// ordinals.
const MOST: u64 = 800;
/// Maximum number of identities in one query.
const MOST_IDENTITIES: usize = 1_000;

type KnownFindings = BTreeMap<String, Stored<Finding>>;

/// Changes the identities of equal results to those of the most similar findings, and adds these
/// findings to `known`. A result whose key no other result or finding has keeps its identity.
pub(super) fn assign(
    ctx: &JobCtx,
    job: &FindingImportJob,
    sighting: &ObservationSource<'_>,
    observations: &mut [ResultObservation],
    known: &mut KnownFindings,
) -> Result<(), JobError> {
    let mut groups = EqualResultGroup::all(ctx, job, observations);
    groups.retain(|group| group.is_moved(sighting, observations, known));
    // Two queries for all groups: a chunk may have many.
    groups.iter_mut().for_each(|group| group.find_next(ctx, job, observations));
    read(ctx, groups.iter().filter_map(|group| group.next.as_ref()), known)?;
    groups.retain(|group| !group.is_alone(observations, known));
    for group in &mut groups {
        if !group.is_whole(sighting, observations, known) {
            group.widen(ctx, job, observations);
        }
    }
    let wide = groups.iter().filter(|group| group.identities.len() > group.members.len());
    read(ctx, wide.flat_map(|group| &group.identities), known)?;
    for group in groups {
        let assigner = EqualResultAssigner::new(sighting, group.identities, known);
        assigner.assign(observations, &group.members, known)?;
    }
    Ok(())
}

/// Adds the stored findings with these identities to `known`.
fn read<'a>(
    ctx: &JobCtx,
    identities: impl Iterator<Item = &'a String>,
    known: &mut KnownFindings,
) -> Result<(), JobError> {
    let unread: Vec<&String> = identities.filter(|id| !known.contains_key(*id)).collect();
    for some in unread.chunks(MOST_IDENTITIES) {
        known.extend(apply::known(ctx, some.iter().copied())?);
    }
    Ok(())
}

/// Whether no result of this run has taken the finding yet. A newer file with a failed run reports
/// the same findings in the same run.
fn is_free(finding: &Finding, sighting: &ObservationSource<'_>) -> bool {
    !finding.is_reported_by(sighting.analysis_id, sighting.analysis_run)
        || finding.shown_at > Some(sighting.ready_at)
}

fn is_present_and_free(finding: &Finding, sighting: &ObservationSource<'_>) -> bool {
    finding.present && is_free(finding, sighting)
}

impl ResultObservation {
    pub(super) fn ordinal(&self) -> u64 {
        self.equals.as_ref().map_or(0, |equals| equals.ordinal)
    }

    /// Returns the identity of the equal result with this ordinal; `None` if the observation has no
    /// key. Must not be called after the observation got the identity of another ordinal.
    fn identity_at(&self, ctx: &JobCtx, job: &FindingImportJob, ordinal: u64) -> Option<String> {
        let key = &self.equals.as_ref()?.key;
        if ordinal == self.ordinal() {
            return Some(self.identity.clone());
        }
        let source = (self.source.tool.as_str(), self.source.rule_id.as_str());
        let (workspace, repository) = (ctx.workspace_id(), job.audit.repository_id);
        Some(identity::identity(workspace, repository, source, key, ordinal))
    }

    /// Returns the observation with one of its weaker keys; `None` if it has none at this index.
    pub(super) fn weaken(&self, ctx: &JobCtx, job: &FindingImportJob, at: usize) -> Option<Self> {
        let weaker = self.weaker.get(at)?;
        let source = (self.source.tool.as_str(), self.source.rule_id.as_str());
        let of = (ctx.workspace_id(), job.audit.repository_id);
        let identity = identity::identity(of.0, of.1, source, &weaker.key, weaker.ordinal);
        Some(Self { identity, equals: Some(weaker.clone()), ..self.clone() })
    }
}

/// Results of a chunk with the same key. The stored findings of a key have consecutive ordinals.
#[derive(Default)]
struct EqualResultGroup {
    /// Indexes of the results in the chunk, in the order of their ordinals.
    members: Vec<usize>,
    /// Identities that the results may get, in the order of their ordinals.
    identities: Vec<String>,
    /// Identity with the ordinal after those of the members.
    next: Option<String>,
}

impl EqualResultGroup {
    /// Returns the groups of a chunk, including those with one result.
    fn all(ctx: &JobCtx, job: &FindingImportJob, observations: &[ResultObservation]) -> Vec<Self> {
        let mut groups: BTreeMap<String, Self> = BTreeMap::new();
        for (at, one) in observations.iter().enumerate().filter(|(_, one)| one.ordinal() < MOST) {
            if let Some(first) = one.identity_at(ctx, job, 0) {
                let group = groups.entry(first).or_default();
                group.members.push(at);
                group.identities.push(one.identity.clone());
            }
        }
        groups.into_values().collect()
    }

    fn ordinals(&self, observations: &[ResultObservation]) -> impl Iterator<Item = u64> {
        self.members.iter().map(move |at| observations[*at].ordinal())
    }

    /// Whether the finding with the identity of a member may belong to another result: it differs,
    /// is gone or taken, or does not exist although findings with smaller ordinals may.
    fn is_moved(
        &self,
        sighting: &ObservationSource<'_>,
        observations: &[ResultObservation],
        known: &KnownFindings,
    ) -> bool {
        let is_from_first = self.ordinals(observations).next() == Some(0);
        self.members.iter().any(|at| {
            let one = EqualResult::new(*at, observations);
            match known.get(&observations[*at].identity) {
                Some(finding) => {
                    one.difference(finding) != Some(0) || !is_present_and_free(finding, sighting)
                }
                None => !is_from_first,
            }
        })
    }

    fn find_next(
        &mut self,
        ctx: &JobCtx,
        job: &FindingImportJob,
        observations: &[ResultObservation],
    ) {
        let last = self.members.last().map(|at| &observations[*at]);
        let last = last.filter(|one| one.ordinal() + 1 < MOST);
        self.next = last.and_then(|one| one.identity_at(ctx, job, one.ordinal() + 1));
    }

    /// Whether all findings of the key are known, present and free, and have ordinals of members.
    /// Then the results need no further identities.
    fn is_whole(
        &self,
        sighting: &ObservationSource<'_>,
        observations: &[ResultObservation],
        known: &KnownFindings,
    ) -> bool {
        let mut findings = self.identities.iter().filter_map(|id| known.get(id));
        self.ordinals(observations).eq(0..self.members.len() as u64)
            && self.next.as_ref().is_none_or(|next| !known.contains_key(next))
            && findings.all(|finding| is_present_and_free(finding, sighting))
    }

    /// Adds the identities of the other ordinals, up to some after those of the members.
    fn widen(&mut self, ctx: &JobCtx, job: &FindingImportJob, observations: &[ResultObservation]) {
        let Some(last) = self.members.last().map(|at| &observations[*at]) else { return };
        let ordinals = 0..(last.ordinal() + 1 + FURTHER).min(MOST);
        self.identities =
            ordinals.filter_map(|ordinal| last.identity_at(ctx, job, ordinal)).collect();
    }

    /// Whether no other result and no other finding has the key, and the finding has the result's
    /// path.
    fn is_alone(&self, observations: &[ResultObservation], known: &KnownFindings) -> bool {
        let [at] = self.members[..] else { return false };
        let is_followed = self.next.as_ref().is_some_and(|next| known.contains_key(next));
        let one = EqualResult::new(at, observations);
        let finding = known.get(&observations[at].identity);
        let has_path = finding.is_some_and(|finding| one.has_path_of(finding));
        has_path && !is_followed && observations[at].ordinal() == 0
    }
}

/// Findings of a key that no result of the file has taken, and the key's other identities.
struct EqualResultAssigner {
    free: Vec<Option<Stored<Finding>>>,
    /// Identities for which no finding is stored, the smallest ordinal last.
    unused: Vec<String>,
}

impl EqualResultAssigner {
    /// Removes the findings with these identities from `known`.
    fn new(
        sighting: &ObservationSource<'_>,
        identities: Vec<String>,
        known: &mut KnownFindings,
    ) -> Self {
        let (mut free, mut unused) = (Vec::new(), Vec::new());
        for id in identities.into_iter().rev() {
            match known.remove(&id) {
                Some(finding) => free.push(Some(finding).filter(|one| is_free(one, sighting))),
                None => unused.push(id),
            }
        }
        free.reverse();
        Self { free, unused }
    }

    fn assign(
        mut self,
        observations: &mut [ResultObservation],
        members: &[usize],
        known: &mut KnownFindings,
    ) -> Result<(), JobError> {
        let (taken, left) = self.take_similar(observations, members);
        for (at, finding) in taken {
            give(&mut observations[at], finding, known);
        }
        for at in left {
            match self.unused.pop() {
                Some(unused) => observations[at].identity = unused,
                None => give(&mut observations[at], self.take_any()?, known),
            }
        }
        Ok(())
    }

    /// Takes the most similar finding for each result. Returns the indexes of the results in the
    /// chunk, those with a finding first, then the others.
    fn take_similar(
        &mut self,
        observations: &[ResultObservation],
        members: &[usize],
    ) -> (Vec<(usize, Stored<Finding>)>, Vec<usize>) {
        let mut left: Vec<EqualResult<'_>> =
            members.iter().map(|at| EqualResult::new(*at, observations)).collect();
        left.sort_by_key(EqualResult::line);
        self.keep_order(&mut left);
        let mut taken = Vec::new();
        for difference in 0..DIFFERENCES {
            left.retain(|one| match self.take(one, difference) {
                Some(finding) => {
                    taken.push((one.at, finding));
                    false
                }
                None => true,
            });
        }
        (taken, left.into_iter().map(|one| one.at).collect())
    }

    /// Marks results of which there are as many with the same path and message as there are present
    /// findings. Probably all lines have moved, so they take the findings in the order of lines.
    fn keep_order(&self, results: &mut [EqualResult<'_>]) {
        for at in 0..results.len() {
            let one = &results[at];
            let alike = results.iter().filter(|other| one.is_like(other)).count();
            let present = self.free.iter().flatten().filter(|finding| finding.present);
            let present = present.filter(|finding| one.is_alike(finding)).count();
            results[at].in_order = alike == present;
        }
    }

    /// Takes a free finding that differs from the result to this degree: a present one if there is
    /// one, and of several the nearest.
    fn take(&mut self, one: &EqualResult<'_>, difference: u32) -> Option<Stored<Finding>> {
        let free = self.free.iter().enumerate();
        let fitting = free.filter_map(|(at, finding)| {
            let finding = finding.as_ref()?;
            let fits = one.difference(finding) == Some(difference);
            fits.then(|| (!finding.present, one.distance(finding), at))
        });
        let (_, _, at) = fitting.min()?;
        self.free[at].take()
    }

    /// Takes any free finding, for a result without an unused identity.
    fn take_any(&mut self) -> Result<Stored<Finding>, JobError> {
        let any = self.free.iter_mut().find_map(Option::take);
        let none = "no identity is left for one of several equal results";
        any.ok_or_else(|| JobError::Fail(none.to_owned()))
    }
}

fn give(observation: &mut ResultObservation, finding: Stored<Finding>, known: &mut KnownFindings) {
    finding.identity_fingerprint.clone_into(&mut observation.identity);
    known.insert(observation.identity.clone(), finding);
}
