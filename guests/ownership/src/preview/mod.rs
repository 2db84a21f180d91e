//! Previews: users to whom open findings would be assigned. `create` creates a preview, `judge`
//! decides one finding, `apply` assigns the findings.

pub(crate) mod apply;
pub(crate) mod create;
mod judge;
pub(crate) mod list;

use area_sdk::prelude::*;

use crate::source::SourceAvailability;

/// Version of the rules that map owners in CODEOWNERS files to users.
const POLICY_VERSION: u32 = 1;

/// Maximum number of items in the snapshot of a preview.
const SHOWN: usize = 100;

/// A request to create a preview for a repository.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewPreview {
    repository_id: Uuid,
    /// Audit whose ownership rules apply; by default the newest audit of the repository that
    /// imported ownership.
    audit_id: Option<Uuid>,
}

/// Status of a finding in a preview.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ItemStatus")]
pub(crate) enum PreviewedFindingStatus {
    /// Applying the preview assigns the finding.
    Ready,
    /// The finding keeps its assignee, who is one of the owners or for whom there is no
    /// replacement.
    Unchanged,
    /// A user must decide; `reason` says why.
    NeedsReview,
    /// The preview was applied, and the finding was assigned.
    Applied,
}

/// A finding in a preview, with the user to whom it would be assigned.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OwnershipItem")]
pub(crate) struct PreviewedFinding {
    /// User to whom the finding would be assigned; null if there is none.
    assignee_id: Option<Uuid>,
    /// Version of the finding's lifecycle when the preview was created.
    collaboration_version: i64,
    current_assignee_id: Option<Uuid>,
    due_at: Option<Timestamp>,
    finding_id: Uuid,
    /// Owners of the finding's paths, as named in the CODEOWNERS file.
    identities: Vec<String>,
    paths: Vec<String>,
    /// Reason why the finding is not ready to be assigned; null if there is none.
    reason: Option<String>,
    /// Line numbers in the CODEOWNERS file of the rules that decide the finding's owners.
    rule_lines: Vec<u32>,
    /// Ids of the services that are built from the repository.
    service_ids: Vec<Uuid>,
    severity: String,
    status: PreviewedFindingStatus,
    title: String,
}

/// The input of a preview, and the findings with their new assignees.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OwnershipSnapshot")]
pub(crate) struct PreviewSnapshot {
    audit_id: Option<Uuid>,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    /// The first 100 items of the preview. The operation that lists a preview's items returns the
    /// rest.
    items: Vec<PreviewedFinding>,
    /// Id of the last item in `items` if there are more items, for `after_id`; null otherwise.
    next_cursor: Option<Uuid>,
    policy_version: u32,
    repository_id: Uuid,
    source_path: Option<String>,
    source_sha256: Option<String>,
    source_status: SourceAvailability,
    warnings: Vec<String>,
}

/// Result of applying a preview: the number of findings by outcome.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OwnershipResult")]
pub(crate) struct ApplyResult {
    applied: usize,
    applied_at: Timestamp,
    needs_review: usize,
    unchanged: usize,
}

/// A stored preview. It changes only when it is applied.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredPreview {
    repository_id: Uuid,
    audit_id: Option<Uuid>,
    created_by: Uuid,
    preview_sha256: String,
    snapshot: PreviewSnapshot,
    needs_review: usize,
    unchanged: usize,
    applied_by: Option<Uuid>,
    result: Option<ApplyResult>,
}

document!(StoredPreview, "previews");

/// A finding of a preview, stored as a document of its own.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PreviewItem")]
pub(crate) struct StoredPreviewedFinding {
    preview_id: Uuid,
    position: usize,
    #[serde(flatten)]
    item: PreviewedFinding,
}

document!(StoredPreviewedFinding, "preview_items");

/// A preview of the assignment of a repository's findings to owners.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OwnershipPreview {
    applied_at: Option<Timestamp>,
    created_at: Timestamp,
    id: Uuid,
    /// SHA-256 of the canonical JSON (RFC 8785) of the original snapshot, with all its items and
    /// `next_cursor` null.
    preview_sha256: String,
    /// Result of applying the preview; null until then.
    result: Option<ApplyResult>,
    snapshot: PreviewSnapshot,
}

impl From<Stored<StoredPreview>> for OwnershipPreview {
    fn from(stored: Stored<StoredPreview>) -> Self {
        let (id, created_at) = (stored.uuid(), stored.created_at);
        let mut preview = stored.value;
        let applied_at = preview.result.as_ref().map(|result| result.applied_at);
        for item in &mut preview.snapshot.items {
            item.show(applied_at.is_some());
        }
        Self {
            applied_at,
            created_at,
            id,
            preview_sha256: preview.preview_sha256,
            result: preview.result,
            snapshot: preview.snapshot,
        }
    }
}

impl PreviewedFinding {
    /// Changes the status of a preview item from ready to applied if the preview was applied. The
    /// stored item keeps its status.
    fn show(&mut self, applied: bool) {
        if applied && self.status == PreviewedFindingStatus::Ready {
            self.status = PreviewedFindingStatus::Applied;
        }
    }
}
