//! Components of a bill of materials, some a step, with their advisories.

use area_sdk::prelude::*;
use area_sdk::{JobError, Scope};

use super::batch::Batch;
use super::{Audit, Input, Retiring, Stage, Tally, derived_id};
use crate::ROOM;
use crate::artifacts;
use crate::inventory::component::{Run, SourceScope, StoredComponent};
use crate::inventory::matches::Alerts;
use crate::matching::MOST_ENTRIES;
use crate::sbom::{Component, Graph, Sbom, identify};

/// Components that are assessed together, at most.
const BATCH: usize = 500;
/// After so many documents a step ends: what a batch reads fits into the rest.
const STEP: usize = 5_000;
const _: () = assert!(ROOM - STEP >= BATCH + MOST_ENTRIES, "a batch's reading fits");

/// Writes some components of the first of these inputs.
pub(super) fn some(
    ctx: &JobCtx,
    audit: &Audit,
    tally: &mut Tally,
    mut inputs: Vec<usize>,
    offset: usize,
) -> Result<Stage, JobError> {
    let Some(input) = inputs.first().and_then(|at| audit.inputs.get(*at)) else {
        return Ok(Stage::Retire(Retiring::default()));
    };
    let content = artifacts::sbom_content(ctx, &input.blob)?;
    let sbom = match artifacts::sbom(&content) {
        Ok(sbom) => sbom,
        Err(error) => {
            tally.fail(input, error);
            inputs.remove(0);
            return Ok(Stage::Write { inputs, offset: 0 });
        }
    };
    if offset == 0 {
        begin(ctx, audit, tally, input, &sbom)?;
    }
    let run = run(ctx, audit, tally, input, &sbom)?;
    if let Some(commit_sha) = run.commit_sha.as_deref().filter(|_| offset == 0) {
        audit.note_commit(ctx, commit_sha)?;
    }
    let end = write(ctx, audit, &run, tally, (&sbom, offset))?;
    if end < sbom.len() {
        return Ok(Stage::Write { inputs, offset: end });
    }
    inputs.remove(0);
    Ok(Stage::Write { inputs, offset: 0 })
}

/// What happens once for each bill.
fn begin(
    ctx: &JobCtx,
    audit: &Audit,
    tally: &mut Tally,
    input: &Input,
    sbom: &Sbom<'_>,
) -> Result<(), JobError> {
    audit.claim(ctx)?;
    tally.sboms += 1;
    for warning in sbom.warnings.iter().chain(graph_limitation(sbom.graph).as_ref()) {
        tally.warn(format!("{}: {warning}", input.filename));
    }
    Ok(())
}

/// What a bill without a whole graph leaves open.
fn graph_limitation(graph: Graph) -> Option<String> {
    match graph {
        Graph::Rooted => None,
        Graph::Absent => Some(
            "The SBOM has no dependency graph, so it is not known whether this is a direct \
             dependency.",
        ),
        Graph::Rootless => Some(
            "The SBOM's dependency graph does not say what its subject itself depends on, so it \
             is not known whether this is a direct dependency.",
        ),
    }
    .map(ToOwned::to_owned)
}

fn run(
    ctx: &JobCtx,
    audit: &Audit,
    tally: &Tally,
    input: &Input,
    sbom: &Sbom<'_>,
) -> Result<Run, JobError> {
    let subject = sbom.subject.as_ref();
    Ok(Run {
        latest: audit.is_head(ctx)?,
        repository_id: audit.repository_id,
        branch_ref: audit.branch_ref.clone(),
        commit_sha: audit.commit_sha.clone().or_else(|| input.commit_sha.clone()),
        audit_id: audit.audit_id,
        scanner_run_id: audit.derived_id(ctx, &format!("run\n{}", input.content_sha256)),
        artifact_sha256: input.content_sha256.clone(),
        subject_digest: subject.and_then(|subject| subject.digest.clone()),
        observed_at: sbom.created_at.filter(|at| *at <= input.ready_at).unwrap_or(input.ready_at),
        source_scope: SourceScope {
            format: sbom.format,
            spec_version: sbom.spec_version.to_owned(),
            subject: subject.map(|subject| subject.key.clone()),
            tool: sbom.tool.clone(),
            filename: input.filename.clone(),
            upload_id: input.upload_id,
        },
        case_known: sbom.case_known,
        limitations: graph_limitation(sbom.graph).into_iter().chain(tally.limits(input)).collect(),
    })
}

impl Audit {
    /// An id that a second run of the same import makes again: UUIDv7 of the
    /// audit's moment, and of what it is for.
    fn derived_id(&self, scope: &Scope, what: &str) -> Uuid {
        derived_id(scope, self.started_at, &format!("{}\n{what}", self.audit_id))
    }
}

/// Writes components until the step is full; where the next begins.
fn write(
    ctx: &JobCtx,
    audit: &Audit,
    run: &Run,
    tally: &mut Tally,
    (sbom, offset): (&Sbom<'_>, usize),
) -> Result<usize, JobError> {
    let (mut at, mut room) = (offset, ROOM);
    let mut alerts = Alerts::default();
    while at < sbom.len() && room > ROOM - STEP {
        let components = sbom.components(at..at + BATCH).into_iter();
        let named = components.map(|component| named(ctx, audit, run, component)).collect();
        let mut batch = Batch::assess(ctx, named, tally.sboms > 1)?;
        let kept = batch.fit(&mut room, usize::from(at == offset));
        batch.keep(ctx, tally, &mut alerts)?;
        at += kept;
    }
    alerts.publish(ctx);
    Ok(at)
}

/// A component as it will be kept, and its id.
fn named(
    ctx: &JobCtx,
    audit: &Audit,
    run: &Run,
    component: Component,
) -> (String, StoredComponent) {
    let who = identify(component.purl.as_ref(), &component.name, component.version.as_deref());
    let branch = run.branch_ref.as_deref().unwrap_or_default();
    let identity = ctx.sha256_hex(format!("{}\n{branch}\n{who}", run.repository_id).as_bytes());
    let id = audit.derived_id(ctx, &identity).to_string();
    (id, StoredComponent::new(run, component, identity))
}
