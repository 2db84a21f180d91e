//! Which bills of materials count: of each subject the newest that can be
//! read. Where there are several, what is found out about each is kept under
//! its digest, so that it is read for that only once.

use std::collections::BTreeSet;

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::{Audit, Input, Tally};
use crate::artifacts::{self, Artifact};

/// Looks at one bill that is not known; when all are, the places of those that
/// count.
pub(super) fn look(
    ctx: &JobCtx,
    audit: &Audit,
    tally: &mut Tally,
) -> Result<Option<Vec<usize>>, JobError> {
    let bills = audit.inputs.iter().enumerate().filter(|(_, input)| input.format != "osv");
    let bills: Vec<(usize, &Input)> = bills.collect();
    // Of one there is nothing to choose; whether it can be read is seen when
    // it is written.
    if let [(at, _)] = bills[..] {
        return Ok(Some(vec![at]));
    }
    let mut known = Vec::new();
    for (at, input) in bills {
        match Artifact::known(ctx, &input.content_sha256)? {
            Some(artifact) => known.push((at, input, artifact)),
            None => {
                let content = artifacts::sbom_content(ctx, &input.blob)?;
                let artifact = Artifact::of_sbom(artifacts::sbom(&content));
                artifact.keep(ctx, &input.content_sha256)?;
                return Ok(None);
            }
        }
    }
    Ok(Some(choose(known, tally)))
}

/// The inputs come newest first.
fn choose(known: Vec<(usize, &Input, Artifact)>, tally: &mut Tally) -> Vec<usize> {
    let (mut subjects, mut chosen) = (BTreeSet::new(), Vec::new());
    let mut superseded = BTreeSet::new();
    for (at, input, artifact) in known {
        // A wrong file that was mended under the same name is old news.
        let name = input.filename.as_str();
        match artifact.errors.into_iter().next() {
            Some(error) if !superseded.contains(name) => tally.fail(input, error),
            Some(_) => {}
            None => {
                let subject = artifact.subject.unwrap_or_else(|| input.filename.clone());
                if subjects.insert(subject) {
                    chosen.push(at);
                }
            }
        }
        superseded.insert(name);
    }
    chosen
}
