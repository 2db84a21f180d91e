//! Findings that older versions or scans stored under another identity of the same result. The
//! first audit that reports such a finding again gives it the new identity, so that decisions stay.

use std::collections::BTreeMap;
use std::path::Path;

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::chunk::CHUNK;
use super::similar::EqualResult;
use super::{FindingImportJob, apply, equals};
use crate::finding::{Finding, ObservationSource};
use crate::observation::ResultObservation;

/// Finds stored findings by the former identities of observations without a known finding, and adds
/// them to `known` under the new identities.
pub(super) fn adopt(
    ctx: &JobCtx,
    observations: &[ResultObservation],
    known: &mut BTreeMap<String, Stored<Finding>>,
) -> Result<(), JobError> {
    let unknown = observations.iter().filter(|one| !known.contains_key(&one.identity));
    let unknown: BTreeMap<&String, &ResultObservation> =
        unknown.filter_map(|one| Some((one.former_identity.as_ref()?, one))).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    for (former, mut finding) in apply::known(ctx, unknown.keys().copied())? {
        if let Some(one) = unknown.get(&former).filter(|one| is_of_same_file(one, &finding)) {
            one.identity.clone_into(&mut finding.identity_fingerprint);
            known.insert(one.identity.clone(), finding);
        }
    }
    Ok(())
}

/// Adopts findings that an earlier run of the analysis reported under one of the two weaker keys of
/// a result, and that this audit does not report. Assigns them like those of equal results.
pub(super) fn adopt_weaker(
    ctx: &JobCtx,
    job: &FindingImportJob,
    sighting: &ObservationSource<'_>,
    observations: &[ResultObservation],
    known: &mut BTreeMap<String, Stored<Finding>>,
) -> Result<(), JobError> {
    let last = observations.last().map(|one| &one.source.rule_id);
    for at in 0..2 {
        let unknown = observations.iter().filter(|one| !known.contains_key(&one.identity));
        let weaker = unknown.filter_map(|one| Some((&one.identity, one.weaken(ctx, job, at)?)));
        let (identities, mut weaker): (Vec<&String>, Vec<_>) = weaker.unzip();
        if weaker.is_empty() || sighting.analysis_run == 1 {
            continue;
        }
        let mut found = apply::known(ctx, weaker.iter().map(|one| &one.identity))?;
        equals::assign(ctx, job, sighting, &mut weaker, &mut found)?;
        for (index, one) in weaker.iter().enumerate() {
            let Some(mut finding) = found.remove(&one.identity) else { continue };
            let is_left = (finding.present && finding.audit_id != sighting.audit_id)
                && finding.reporters().any(|(id, _)| id == sighting.analysis_id)
                && !known.contains_key(&one.identity);
            // Other chunks may have equal results; then only an equal line is certain.
            let is_whole = (observations.len() < CHUNK || last != Some(&one.source.rule_id))
                && weaker.iter().any(|first| first.ordinal() == 0 && first.is_equal_to(one));
            let is_exact = || EqualResult::new(index, &weaker).difference(&finding) == Some(0);
            if is_left && (is_whole || is_exact()) {
                identities[index].clone_into(&mut finding.identity_fingerprint);
                known.insert(identities[index].clone(), finding);
            }
        }
    }
    Ok(())
}

/// Whether the finding is in the same file as the observation, perhaps below another folder.
fn is_of_same_file(observation: &ResultObservation, finding: &Finding) -> bool {
    match (observation.first_path(), finding.paths.first()) {
        (Some(path), Some(former)) => {
            let (path, former) = (Path::new(path), Path::new(former));
            former.ends_with(path) || path.ends_with(former)
        }
        (path, former) => path == former,
    }
}
