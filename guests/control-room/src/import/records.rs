//! Evidence records of kind `finding`. Each record is a finding itself, unless it references an
//! uploaded file, whose content is imported instead.
//!
//! The tool of such a finding is the record's provider, its rule is `evidence.` plus the source
//! type, and its path is the reference. Records with equal content are one finding. If a record is
//! not sent again, its finding still counts as reported.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use area_sdk::JobError;
use area_sdk::prelude::*;
use area_sdk::text::first_line;
use area_shared::evidence::EvidenceRecord;
use serde_json::Map;

use super::chunk::{self, ObservationChunk};
use super::key::AnalysisKey;
use super::{FindingImportJob, ImportStep, analysis};
use crate::identity::{ResultKey, identity};
use crate::observation::{
    FindingEvidenceRecord, FindingLocation, ResultObservation, SourceKind, SourceTool,
};
use crate::severity::Rating;
use crate::similarity::TextFingerprint;
use crate::text::clean;

/// Maximum number of evidence records that one job step reads.
const STEP: usize = 200;

/// Converts the next evidence records to observations and stores them in chunks. Returns the next
/// step of the job.
pub(super) fn step(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    from: usize,
) -> Result<ImportStep, JobError> {
    let some: Vec<Uuid> = job.audit.records.iter().skip(from).take(STEP).copied().collect();
    if some.is_empty() {
        return Ok(ImportStep::Apply { chunk: 0 });
    }
    let carried = job.audit.inputs.iter().flat_map(|input| &input.evidence_ids);
    let carried: BTreeSet<Uuid> = carried.copied().collect();
    let wanted = some.iter().filter(|id| !carried.contains(id));
    let records = ctx.documents::<EvidenceRecord>().get_many(wanted)?;
    let mut by_provider: BTreeMap<String, Vec<EvidenceRecord>> = BTreeMap::new();
    for record in records {
        by_provider.entry(record.provider.clone()).or_default().push(record.value);
    }
    for (provider, records) in by_provider {
        observe(ctx, job, provider, records)?;
    }
    Ok(ImportStep::Records { from: from + some.len() })
}

fn observe(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    tool: String,
    mut records: Vec<EvidenceRecord>,
) -> Result<(), JobError> {
    let key = AnalysisKey::of_category(tool, "evidence");
    // Of records with equal content, the newest is the finding.
    records.sort_by_key(|record| Reverse(record.observed_at));
    let Some(latest) = records.first().map(|record| record.observed_at) else { return Ok(()) };
    let known = job.parts.len();
    let part = analysis::part(job, &key)?;
    analysis::begin(ctx, job, known, None)?;
    let mut chunk = ObservationChunk {
        part,
        ready_at: latest,
        commit_sha: job.audit.commit_sha.clone(),
        evidence_ids: Vec::new(),
        observations: Vec::new(),
    };
    let mut seen = BTreeSet::new();
    for record in records {
        let observation = observation(ctx.workspace_id(), job.audit.repository_id, record);
        if seen.insert(observation.identity.clone()) {
            chunk.observations.push(observation);
        }
    }
    chunk::keep(ctx, job, &mut chunk)
}

fn observation(workspace: Uuid, repository: Uuid, record: EvidenceRecord) -> ResultObservation {
    let EvidenceRecord { evidence_id, observed_at, .. } = record;
    let rule_id = format!("evidence.{}", record.source_type);
    let said = clean(&record.summary, 2000);
    let path = clean(&record.source_ref, 1000);
    let message = said.chars().filter(|c| !c.is_numeric()).collect();
    let key = ResultKey::Message { path: path.clone(), message };
    // Records with equal content get the same identity.
    let identity = identity(workspace, repository, (&record.provider, &rule_id), &key, 0);
    let title = if said.is_empty() { &path } else { first_line(&said) };
    let nothing = Map::new();
    ResultObservation {
        identity,
        former_identity: None,
        equals: None,
        weaker: Vec::new(),
        title: clean(title, 300),
        rating: Rating::of([&nothing, &nothing], "warning"),
        rule_family: rule_id.clone(),
        sketch: TextFingerprint::of([said.as_str()]),
        message_hash: None,
        source: SourceTool { rule_id, tool: record.provider, version: None },
        source_family: SourceKind::Evidence,
        locations: vec![FindingLocation {
            path: Some(path),
            start_line: None,
            start_column: None,
            end_line: None,
            end_column: None,
            logical_name: None,
        }],
        purl: None,
        suppressed: None,
        revision: None,
        record: Some(FindingEvidenceRecord { evidence_id, observed_at }),
    }
}
