//! Which bills of materials count: of each subject the newest that can be
//! read. What is found out about a file is kept under its digest, so that each
//! is read for that only once.

use std::collections::BTreeSet;

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::{Audit, Input, Stage, Tally, write};
use crate::artifacts::{self, Artifact};

/// Looks at one bill that is not known. When all are, those that count are
/// written next: the one that was just read at once, where it is the first.
pub(super) fn look(ctx: &JobCtx, audit: &Audit, tally: &mut Tally) -> Result<Stage, JobError> {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for (at, input) in audit.inputs.iter().enumerate().filter(|(_, input)| input.format != "osv") {
        match Artifact::known(ctx, &input.content_sha256)? {
            Some(artifact) => known.push((at, input, artifact)),
            None => unknown.push((at, input)),
        }
    }
    let Some((at, input)) = unknown.first().copied() else {
        return Ok(Stage::Write { inputs: choose(known, tally), offset: 0 });
    };
    let content = artifacts::sbom_content(ctx, &input.blob)?;
    let read = artifacts::sbom(&content);
    let artifact = Artifact::of_sbom(read.as_ref());
    artifact.keep(ctx, &input.content_sha256)?;
    if unknown.len() > 1 {
        return Ok(Stage::Look);
    }
    known.push((at, input, artifact));
    known.sort_by_key(|(at, ..)| *at);
    let inputs = choose(known, tally);
    match read {
        Ok(sbom) if inputs.first() == Some(&at) => {
            write::of_bill(ctx, audit, tally, (inputs, 0), &sbom)
        }
        _ => Ok(Stage::Write { inputs, offset: 0 }),
    }
}

/// The places of those that count. The inputs come newest first.
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
