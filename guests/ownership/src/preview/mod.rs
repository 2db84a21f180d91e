//! Previews: who would be assigned to which findings. `create` makes one,
//! `judge` decides over a finding, `apply` assigns.

pub(crate) mod apply;
pub(crate) mod create;
mod judge;
pub(crate) mod list;

use area_sdk::prelude::*;

use crate::source::SourceStatus;

/// Which rules map owners to people; a change of them is another number.
const POLICY_VERSION: u32 = 1;

/// How many items a snapshot shows itself.
const SHOWN: usize = 100;

/// Which repository is looked at, and by the rules of which audit.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewPreview {
    repository_id: Uuid,
    /// The newest audit that has imported ownership, where nothing is said.
    audit_id: Option<Uuid>,
}

/// What is to happen to a finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ItemStatus {
    /// Will be assigned.
    Ready,
    /// Is assigned to an owner already, or stays as it is.
    Unchanged,
    /// Somebody must decide; see `reason`.
    NeedsReview,
    /// Was assigned.
    Applied,
}

/// A finding of a preview, as the contract shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Item {
    /// Who would be assigned.
    assignee_id: Option<Uuid>,
    /// The finding's lifecycle version that was looked at.
    collaboration_version: i64,
    current_assignee_id: Option<Uuid>,
    due_at: Option<Timestamp>,
    finding_id: Uuid,
    /// The owners that the file names.
    identities: Vec<String>,
    paths: Vec<String>,
    /// Why it is not ready.
    reason: Option<String>,
    /// The lines of the file that decided.
    rule_lines: Vec<u32>,
    /// Services that the repository is built into.
    service_ids: Vec<Uuid>,
    severity: String,
    status: ItemStatus,
    title: String,
}

/// What a preview looked at and found, as the contract shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Snapshot {
    audit_id: Option<Uuid>,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    /// The first 100; the operation that lists a preview's items has the rest.
    items: Vec<Item>,
    /// The last item shown, where there are more; see `after_id` there.
    next_cursor: Option<Uuid>,
    policy_version: u32,
    repository_id: Uuid,
    source_path: Option<String>,
    source_sha256: Option<String>,
    source_status: SourceStatus,
    warnings: Vec<String>,
}

/// What applying did, as the contract shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PreviewResult {
    applied: usize,
    applied_at: Timestamp,
    needs_review: usize,
    unchanged: usize,
}

/// A preview as it is kept; never changed but by applying it.
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

/// A finding of a preview as it is kept.
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

/// A preview as the contract shows it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OwnershipPreview {
    applied_at: Option<Timestamp>,
    created_at: Timestamp,
    id: Uuid,
    /// SHA-256 of the canonical JSON (RFC 8785) of the snapshot as it was made,
    /// with all its items and `next_cursor` null.
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
    /// Items are kept as they were previewed; what was ready is applied with
    /// its preview.
    fn show(&mut self, applied: bool) {
        if applied && self.status == ItemStatus::Ready {
            self.status = ItemStatus::Applied;
        }
    }
}
