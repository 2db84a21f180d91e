//! Assigns equal results of a file to stored findings by their paths.
//!
//! Results with the same key differ by their ordinal only. If one of them is fixed, or a new one is
//! before it in the file, the ordinals of the others change. So a result first takes the finding
//! that has its path; the others take what is left, so that a moved file keeps its findings. A
//! decision about a result that is gone does not apply to another file.

use std::collections::BTreeMap;

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::FindingImportJob;
use crate::finding::{Finding, ObservationSource};
use crate::identity;
use crate::observation::ResultObservation;
use crate::state::FindingState;

/// Number of ordinals beyond those of the equal results in a file with which stored findings are
/// looked up.
const FURTHER: u64 = 32;
/// Maximum number of equal results whose paths are compared; if there are more, all keep their
/// ordinals. Only larger groups are cut into several chunks.
const MOST: u64 = 800;

type KnownFindings = BTreeMap<String, Stored<Finding>>;

/// Changes the identities of equal results to those of the findings with the same path, and adds
/// these findings to `known`.
pub(super) fn assign(
    ctx: &JobCtx,
    job: &FindingImportJob,
    sighting: &ObservationSource<'_>,
    observations: &mut [ResultObservation],
    known: &mut KnownFindings,
) -> Result<(), JobError> {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, one) in observations.iter().enumerate() {
        if let Some(first) = one.identity_at(ctx, job, 0) {
            groups.entry(first).or_default().push(at);
        }
    }
    for members in groups.into_values() {
        let few = members.iter().all(|at| observations[*at].ordinal() < MOST);
        if few && members.iter().any(|at| is_moved(&observations[*at], known)) {
            let group = EqualResultAssigner::read(ctx, job, sighting, observations, &members)?;
            group.assign(observations, members, known)?;
        }
    }
    Ok(())
}

/// Whether the finding with the observation's identity may belong to another result: it has another
/// path, or it does not exist though findings of smaller ordinals may.
fn is_moved(observation: &ResultObservation, known: &KnownFindings) -> bool {
    match known.get(&observation.identity) {
        Some(finding) => finding.paths.first() != observation.first_path(),
        None => observation.ordinal() > 0,
    }
}

impl ResultObservation {
    fn ordinal(&self) -> u64 {
        self.equals.as_ref().map_or(0, |equals| equals.ordinal)
    }

    /// Returns the identity of the equal result with this ordinal; `None` if the key contains the
    /// path, so that results are not assigned by path.
    fn identity_at(&self, ctx: &JobCtx, job: &FindingImportJob, ordinal: u64) -> Option<String> {
        let source = (self.source.tool.as_str(), self.source.rule_id.as_str());
        let (workspace, repository) = (ctx.workspace_id(), job.audit.repository_id);
        let key = &self.equals.as_ref()?.key;
        Some(identity::identity(workspace, repository, source, key, ordinal))
    }
}

/// Identities of equal results in the order of their ordinals, and the stored findings that no
/// result of the file has taken.
struct EqualResultAssigner {
    identities: Vec<String>,
    free: KnownFindings,
    /// Identities for which no finding is stored, the smallest ordinal last.
    unused: Vec<String>,
}

impl EqualResultAssigner {
    fn read(
        ctx: &JobCtx,
        job: &FindingImportJob,
        sighting: &ObservationSource<'_>,
        observations: &[ResultObservation],
        members: &[usize],
    ) -> Result<Self, JobError> {
        let last = members.iter().map(|at| observations[*at].ordinal()).max().unwrap_or_default();
        let one = members.first().map(|at| &observations[*at]);
        let identity = |ordinal| one.and_then(|one| one.identity_at(ctx, job, ordinal));
        let identities: Vec<String> = (0..=last + FURTHER).filter_map(identity).collect();
        let stored = super::apply::known(ctx, identities.iter())?;
        let without = |id: &&String| !stored.contains_key(*id);
        let unused = identities.iter().rev().filter(without).cloned().collect();
        let mut free = stored;
        // A newer file with a failed run reports the same findings in the same run.
        free.retain(|_, finding| {
            !finding.is_reported_by(sighting.analysis_id, sighting.analysis_run)
                || finding.shown_at > Some(sighting.ready_at)
        });
        Ok(Self { identities, free, unused })
    }

    /// Removes and returns the first free finding for which `fits` is true.
    fn take(&mut self, fits: impl Fn(&Finding) -> bool) -> Option<Stored<Finding>> {
        let fitting = |id: &&String| self.free.get(*id).is_some_and(|finding| fits(finding));
        let id = self.identities.iter().find(fitting)?;
        self.free.remove(id)
    }

    fn assign(
        mut self,
        observations: &mut [ResultObservation],
        members: Vec<usize>,
        known: &mut KnownFindings,
    ) -> Result<(), JobError> {
        for id in &self.identities {
            known.remove(id);
        }
        let mut moved = Vec::new();
        for at in members {
            let path = observations[at].first_path();
            match self.take(|finding| finding.paths.first() == path) {
                Some(own) => give(&mut observations[at], own, known),
                None => moved.push(at),
            }
        }
        for at in moved {
            let left = self.take(|finding| finding.present);
            let left =
                left.or_else(|| self.take(|finding| finding.state == FindingState::Verified));
            match left {
                Some(left) => give(&mut observations[at], left, known),
                None => observations[at].identity = self.unused.pop().ok_or_else(no_identity)?,
            }
        }
        Ok(())
    }
}

fn no_identity() -> JobError {
    JobError::Fail("no identity is left for one of several equal results".to_owned())
}

fn give(observation: &mut ResultObservation, finding: Stored<Finding>, known: &mut KnownFindings) {
    finding.identity_fingerprint.clone_into(&mut observation.identity);
    known.insert(observation.identity.clone(), finding);
}
