//! Audits: stored form and responses.

use std::collections::BTreeMap;

use area_sdk::Progress;
use area_sdk::prelude::*;
use serde_json::{Map, Value};

use super::AuditStartCause;

/// State of an audit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuditState {
    /// The audit waits for a worker that collects its inputs.
    Queued,
    /// Other areas import the audit's inputs.
    Running,
    /// All parts of the audit have ended, and it has not failed; its facts can be used.
    Completed,
    /// No part of the audit succeeded, or the findings could not be imported.
    Failed,
}

impl AuditState {
    /// Whether the audit has ended.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// What started an audit: a user or a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trigger {
    /// A user requested the audit.
    Manual,
    /// A due time of a schedule started the audit.
    Schedule,
}

/// Repository, branch and commit of an audit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Target")]
pub(crate) struct RepositoryRevision {
    pub(crate) repository_id: Uuid,
    pub(crate) branch_ref: Option<String>,
    pub(crate) commit_sha: Option<String>,
}

/// A file that an audit imports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AuditInput")]
pub(crate) struct AuditInputFile {
    pub(crate) upload_id: Uuid,
    /// Name of the blob with the content in the area `uploads`.
    pub(crate) blob: String,
    pub(crate) format: String,
    pub(crate) filename: String,
    /// Streams to which the content belongs; each new content of a stream replaces the earlier one.
    /// `file:` and the filename for an upload of the repository; `evidence:`, the provider and
    /// `source_ref` of referencing records for other uploads, at most 8. Empty in audits of former
    /// versions.
    #[serde(default)]
    pub(crate) streams: Vec<String>,
    pub(crate) content_sha256: String,
    pub(crate) bytes: u64,
    pub(crate) ready_at: Timestamp,
    pub(crate) commit_sha: Option<String>,
    /// Ids of the newest evidence records that reference this content, at most 500.
    pub(crate) evidence_ids: Vec<Uuid>,
}

/// Status of one part of an audit.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PartStatus {
    /// The area that imports this part has not reported its result.
    #[default]
    Pending,
    /// The area imported the inputs of this part.
    Succeeded,
    /// The area could not import the inputs of this part.
    Failed,
    /// The area did not report the result of this part in time.
    Missing,
}

/// Reason why a file, or a whole part of an audit, was not imported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImportError {
    /// Id of the upload that caused the error; null if the whole part failed.
    pub(crate) upload_id: Option<Uuid>,
    pub(crate) code: String,
    pub(crate) detail: String,
}

/// Result of one area that takes part in audits.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Part")]
pub(crate) struct AreaAuditResult {
    pub(crate) status: PartStatus,
    pub(crate) completed_at: Option<Timestamp>,
    pub(crate) counts: BTreeMap<String, i64>,
    pub(crate) warnings: Vec<String>,
    pub(crate) errors: Vec<ImportError>,
}

/// Results of the three areas that take part in audits.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Parts")]
pub(crate) struct AreaAuditResults {
    pub(crate) findings: AreaAuditResult,
    pub(crate) dependencies: AreaAuditResult,
    pub(crate) ownership: AreaAuditResult,
}

impl AreaAuditResults {
    pub(crate) fn named(&self) -> [(&'static str, &AreaAuditResult); 3] {
        let Self { findings, dependencies, ownership } = self;
        [("findings", findings), ("dependencies", dependencies), ("ownership", ownership)]
    }

    pub(crate) fn each_mut(&mut self) -> [&mut AreaAuditResult; 3] {
        [&mut self.findings, &mut self.dependencies, &mut self.ownership]
    }
}

/// A stored audit. Id and creation time are those of the document.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredAudit {
    #[serde(flatten)]
    pub(crate) target: RepositoryRevision,
    pub(crate) state: AuditState,
    pub(crate) trigger: Trigger,
    pub(crate) requested_by: Uuid,
    pub(crate) schedule_id: Option<Uuid>,
    /// Due time of the schedule that started the audit; `None` for a manual audit.
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) completed_at: Option<Timestamp>,
    pub(crate) error_code: Option<String>,
    pub(crate) inputs: Vec<AuditInputFile>,
    /// Ids of evidence records of kind `finding` about the repository, without those whose content
    /// is a SARIF file of the audit.
    pub(crate) records: Vec<Uuid>,
    pub(crate) parts: AreaAuditResults,
    /// Facts for predicates, by part of the audit; `audit` has the audit's id, repository, branch
    /// and commit.
    pub(crate) facts: Map<String, Value>,
    pub(crate) warnings: Vec<String>,
}

document!(StoredAudit, "audits");

impl StoredAudit {
    pub(crate) fn new(target: RepositoryRevision, cause: &AuditStartCause) -> Self {
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
            parts: AreaAuditResults::default(),
            facts: Map::new(),
            warnings: Vec::new(),
        }
    }
}

/// An error because of which an audit did not import a file or a whole part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditError")]
struct AuditImportError {
    /// Part of the audit that has the error: `findings`, `dependencies` or `ownership`.
    part: &'static str,
    upload_id: Option<Uuid>,
    filename: Option<String>,
    code: String,
    /// Description of the error and how to fix it, for people.
    detail: String,
}

impl StoredAudit {
    /// Returns the errors of all parts with the names of their files.
    fn errors(&self) -> Vec<AuditImportError> {
        let of_part = |(part, errors): (&'static str, &[ImportError])| {
            let named = |error: &ImportError| AuditImportError {
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

/// An audit in a list, without inputs and facts.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AuditSummary")]
pub(crate) struct AuditListItem {
    id: Uuid,
    #[serde(flatten)]
    target: RepositoryRevision,
    state: AuditState,
    trigger: Trigger,
    /// Id of the user who requested the audit or created its schedule.
    requested_by: Uuid,
    schedule_id: Option<Uuid>,
    /// Due time of the schedule that started the audit; null for a manual audit.
    due_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Time at which the audit's inputs were collected; null before.
    started_at: Option<Timestamp>,
    /// Time at which the audit completed or failed; null before.
    completed_at: Option<Timestamp>,
    /// Error code; null unless the audit failed.
    error_code: Option<String>,
    input_count: usize,
    parts: AreaAuditResults,
    warnings: Vec<String>,
    /// Errors of all parts of the audit.
    errors: Vec<AuditImportError>,
    version: u64,
}

impl AuditListItem {
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

/// An audit with its inputs and facts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Audit {
    #[serde(flatten)]
    summary: AuditListItem,
    /// Progress of the parts that are being imported: `findings` in steps, `dependencies` in
    /// components.
    progress: BTreeMap<&'static str, Progress>,
    /// Files that the audit imports, newest first.
    inputs: Vec<AuditInputFile>,
    /// Results of the audit; empty until it has ended. `findings`, `dependencies` and `ownership`
    /// are present if that part succeeded. They lack members for which nothing was read: all of
    /// `findings` without a scan, or if one failed or was refused, all of `dependencies` without an
    /// SBOM or if one was refused, its `vulnerable` and `advisories` while the workspace has no
    /// advisories, and `ownership.unowned` without paths or if not all findings were read.
    facts: Map<String, Value>,
}

impl Audit {
    /// Returns the audit for a response, with the running jobs about it: area, kind and progress.
    pub(crate) fn new(audit: Stored<StoredAudit>, jobs: Vec<(String, String, Progress)>) -> Self {
        let part = |(area, _, progress): (String, String, Progress)| match area.as_str() {
            "control_room" => Some(("findings", progress)),
            "dependencies" => Some(("dependencies", progress)),
            _ => None,
        };
        Self {
            summary: AuditListItem::of(&audit),
            progress: jobs.into_iter().filter_map(part).collect(),
            inputs: audit.value.inputs,
            facts: audit.value.facts,
        }
    }
}
