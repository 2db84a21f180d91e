//! An audit as it is kept, and as it is shown.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use serde_json::{Map, Value};

use super::Cause;

/// Where an audit stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuditState {
    /// Waits for its place.
    Queued,
    /// Its parts are being imported.
    Running,
    /// Its facts are there.
    Completed,
    /// It came to nothing.
    Failed,
}

impl AuditState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// Is there nothing more to come?
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// What made an audit start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trigger {
    /// Somebody asked for it.
    Manual,
    /// A schedule was due.
    Schedule,
}

/// What an audit looks at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Target {
    pub(crate) repository_id: Uuid,
    pub(crate) branch_ref: Option<String>,
    pub(crate) commit_sha: Option<String>,
}

/// An artifact that an audit takes in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AuditInput {
    pub(crate) upload_id: Uuid,
    /// The name of the content among the uploads' blobs.
    pub(crate) blob: String,
    pub(crate) format: String,
    pub(crate) filename: String,
    /// What its content continues: `file:` and the filename; for an upload that
    /// only evidence assigns to the repository, `evidence:` and the record's
    /// provider and `source_ref`, one for each record. Empty in audits from
    /// before streams.
    #[serde(default)]
    pub(crate) streams: Vec<String>,
    pub(crate) content_sha256: String,
    pub(crate) bytes: u64,
    pub(crate) ready_at: Timestamp,
    pub(crate) commit_sha: Option<String>,
    /// Evidence records that name this content.
    pub(crate) evidence_ids: Vec<Uuid>,
}

/// How a part of an audit stands.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PartStatus {
    /// Not heard of yet.
    #[default]
    Pending,
    /// Imported.
    Succeeded,
    /// Could not be imported.
    Failed,
    /// Not heard of in time.
    Missing,
}

/// What keeps one artifact, or a whole part, from being imported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImportError {
    /// The artifact, where it is one's fault.
    pub(crate) upload_id: Option<Uuid>,
    pub(crate) code: String,
    pub(crate) detail: String,
}

/// What one area made of an audit.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Part {
    pub(crate) status: PartStatus,
    pub(crate) completed_at: Option<Timestamp>,
    pub(crate) counts: BTreeMap<String, i64>,
    pub(crate) warnings: Vec<String>,
    pub(crate) errors: Vec<ImportError>,
}

/// The three parts of an audit.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Parts {
    pub(crate) findings: Part,
    pub(crate) dependencies: Part,
    pub(crate) ownership: Part,
}

impl Parts {
    pub(crate) fn named(&self) -> [(&'static str, &Part); 3] {
        let Self { findings, dependencies, ownership } = self;
        [("findings", findings), ("dependencies", dependencies), ("ownership", ownership)]
    }

    pub(crate) fn each_mut(&mut self) -> [&mut Part; 3] {
        [&mut self.findings, &mut self.dependencies, &mut self.ownership]
    }
}

/// An audit as it is kept; its id and the time of its making are the
/// document's.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredAudit {
    #[serde(flatten)]
    pub(crate) target: Target,
    pub(crate) state: AuditState,
    pub(crate) trigger: Trigger,
    pub(crate) requested_by: Uuid,
    pub(crate) schedule_id: Option<Uuid>,
    /// The moment at which the schedule wanted it.
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) completed_at: Option<Timestamp>,
    pub(crate) error_code: Option<String>,
    pub(crate) inputs: Vec<AuditInput>,
    /// Evidence records of kind `finding` about the repository.
    pub(crate) records: Vec<Uuid>,
    pub(crate) parts: Parts,
    /// By part; `audit` says which audit it is.
    pub(crate) facts: Map<String, Value>,
    pub(crate) warnings: Vec<String>,
}

impl Document for StoredAudit {
    const COLLECTION: &'static str = "audits";
}

impl StoredAudit {
    pub(crate) fn new(target: Target, cause: &Cause) -> Self {
        Self {
            target,
            state: AuditState::Queued,
            trigger: cause.trigger,
            requested_by: cause.requested_by,
            schedule_id: cause.due.map(|(schedule, _)| schedule),
            due_at: cause.due.map(|(_, due_at)| due_at),
            started_at: None,
            completed_at: None,
            error_code: None,
            inputs: Vec::new(),
            records: Vec::new(),
            parts: Parts::default(),
            facts: Map::new(),
            warnings: Vec::new(),
        }
    }
}

/// A file that an audit could not import.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
struct AuditError {
    /// `findings`, `dependencies` or `ownership`.
    part: &'static str,
    upload_id: Option<Uuid>,
    filename: Option<String>,
    code: String,
    /// What is wrong with it.
    detail: String,
}

impl StoredAudit {
    /// The errors of all parts, with the names of their files.
    fn errors(&self) -> Vec<AuditError> {
        let of_part = |(part, errors): (&'static str, &[ImportError])| {
            let named = |error: &ImportError| AuditError {
                part,
                upload_id: error.upload_id,
                filename: self.filename(error.upload_id),
                code: error.code.clone(),
                detail: error.detail.clone(),
            };
            errors.iter().map(named).collect::<Vec<_>>()
        };
        let parts = self.parts.named().map(|(name, part)| (name, part.errors.as_slice()));
        parts.into_iter().flat_map(of_part).collect()
    }

    fn filename(&self, upload_id: Option<Uuid>) -> Option<String> {
        let mut inputs = self.inputs.iter();
        let input = inputs.find(|input| Some(input.upload_id) == upload_id)?;
        Some(input.filename.clone())
    }
}

/// An audit in a list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditSummary {
    id: Uuid,
    #[serde(flatten)]
    target: Target,
    state: AuditState,
    trigger: Trigger,
    /// Who asked for it, or whose schedule it was.
    requested_by: Uuid,
    schedule_id: Option<Uuid>,
    /// The moment at which the schedule wanted it.
    due_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// When it had gathered what it looks at.
    started_at: Option<Timestamp>,
    /// When it was completed, or failed.
    completed_at: Option<Timestamp>,
    /// Why it failed.
    error_code: Option<String>,
    input_count: usize,
    parts: Parts,
    warnings: Vec<String>,
    /// Files that could not be imported, of all parts.
    errors: Vec<AuditError>,
    version: u64,
}

impl AuditSummary {
    pub(crate) fn of(audit: &Stored<StoredAudit>) -> Self {
        Self {
            id: audit.uuid(),
            target: audit.target.clone(),
            state: audit.state,
            trigger: audit.trigger,
            requested_by: audit.requested_by,
            schedule_id: audit.schedule_id,
            due_at: audit.due_at,
            created_at: audit.created_at,
            updated_at: audit.updated_at,
            started_at: audit.started_at,
            completed_at: audit.completed_at,
            error_code: audit.error_code.clone(),
            input_count: audit.inputs.len(),
            parts: audit.parts.clone(),
            warnings: audit.warnings.clone(),
            errors: audit.errors(),
            version: audit.version,
        }
    }
}

/// An audit, whole.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Audit {
    #[serde(flatten)]
    summary: AuditSummary,
    /// Artifacts it takes in, newest first.
    inputs: Vec<AuditInput>,
    /// What it found; empty until it is complete. `findings`, `dependencies`
    /// and `ownership` are there where that part succeeded.
    facts: Map<String, Value>,
}

impl From<Stored<StoredAudit>> for Audit {
    fn from(audit: Stored<StoredAudit>) -> Self {
        Self {
            summary: AuditSummary::of(&audit),
            inputs: audit.value.inputs,
            facts: audit.value.facts,
        }
    }
}
