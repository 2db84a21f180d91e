//! Findings that older versions stored under another identity of the same result. The first audit
//! that reports such a finding again gives it the new identity, so that decisions about it stay.

use std::collections::BTreeMap;
use std::path::Path;

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::apply;
use crate::finding::Finding;
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
