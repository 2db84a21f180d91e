//! Previews: which users would be assigned to which findings. `create` makes a preview, `judge`
//! decides about a finding, `apply` assigns.

pub(crate) mod apply;
pub(crate) mod create;
mod judge;
pub(crate) mod list;

use area_sdk::prelude::*;

use crate::source::SourceStatus;

/// Version of the rules that map owners to users.
const POLICY_VERSION: u32 = 1;

/// Number of items in a snapshot.
const SHOWN: usize = 100;

/// Repository of a preview, and the audit whose rules apply.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewPreview {
    repository_id: Uuid,
    /// By default the newest audit that imported ownership.
    audit_id: Option<Uuid>,
}

/// Status of a finding in a preview.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ItemStatus {
    /// It will be assigned.
    Ready,
    /// An owner is assigned already, or it is not changed.
    Unchanged,
    /// A user must decide; see `reason`.
    NeedsReview,
    /// It was assigned.
    Applied,
}

/// A finding of a preview in responses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OwnershipItem")]
pub(crate) struct Item {
    /// User who would be assigned.
    assignee_id: Option<Uuid>,
    /// Lifecycle version of the finding at the preview.
    collaboration_version: i64,
    current_assignee_id: Option<Uuid>,
    due_at: Option<Timestamp>,
    finding_id: Uuid,
    /// Owners named in the file.
    identities: Vec<String>,
    paths: Vec<String>,
    /// Why it is not ready; null if it is.
    reason: Option<String>,
    /// Lines of the deciding rules.
    rule_lines: Vec<u32>,
    /// Services built from the repository.
    service_ids: Vec<Uuid>,
    severity: String,
    status: ItemStatus,
    title: String,
}

/// Input and result of a preview in responses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OwnershipSnapshot")]
pub(crate) struct Snapshot {
    audit_id: Option<Uuid>,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    /// The first 100 items. The operation that lists a preview's items returns the rest.
    items: Vec<Item>,
    /// The last item shown, if there are more; see `after_id`.
    next_cursor: Option<Uuid>,
    policy_version: u32,
    repository_id: Uuid,
    source_path: Option<String>,
    source_sha256: Option<String>,
    source_status: SourceStatus,
    warnings: Vec<String>,
}

/// Result of applying a preview.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OwnershipResult")]
pub(crate) struct PreviewResult {
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
    snapshot: Snapshot,
    needs_review: usize,
    unchanged: usize,
    applied_by: Option<Uuid>,
    result: Option<PreviewResult>,
}

impl Document for StoredPreview {
    const COLLECTION: &'static str = "previews";
}

/// A stored finding of a preview.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PreviewItem {
    preview_id: Uuid,
    position: usize,
    #[serde(flatten)]
    item: Item,
}

impl Document for PreviewItem {
    const COLLECTION: &'static str = "preview_items";
}

/// A preview in responses.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OwnershipPreview {
    applied_at: Option<Timestamp>,
    created_at: Timestamp,
    id: Uuid,
    /// SHA-256 of the canonical JSON (RFC 8785) of the original snapshot, with all its items and
    /// `next_cursor` null.
    preview_sha256: String,
    /// Null until it is applied.
    result: Option<PreviewResult>,
    snapshot: Snapshot,
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

impl Item {
    /// Shows ready items as applied if the preview was applied; the stored items do not change.
    fn show(&mut self, applied: bool) {
        if applied && self.status == ItemStatus::Ready {
            self.status = ItemStatus::Applied;
        }
    }
}
