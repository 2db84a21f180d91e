//! Snapshots and their operations.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use crate::content::{self, ContextContent};

/// Text for the OpenAPI document: the rules of snapshots.
pub(crate) const DESCRIPTION: &str = "A stored snapshot, renewed within seconds of any change. \
    `content_hash` is the SHA-256 of the canonical JSON (RFC 8785) of all but `id`, \
    `generated_at` and itself; `id` follows from it, so that the same content has the same hash \
    and the same id. `generated_at` is the time from which the content was valid. `ETag` changes \
    with `content_hash` and `generated_at`: send it as `If-None-Match` to get 304 while nothing \
    has changed.\n\n\
    `entity_count` counts repositories that are not archived, services, groups, components of the \
    latest audits, and what is deployed now; `relationship_count` dependencies between groups, \
    and the links of the newest 5,000 services to repositories, groups and owners; \
    `finding_count` open findings; `evidence_count` evidence records. `source_count` counts all \
    sources, of which the newest 500 repositories and 200 others are listed.\n\n\
    A source of kind `repository` has the signals `dependencies`, `findings` and `ownership` \
    where its latest completed audit imported such artifacts (of CODEOWNERS files, at least one \
    rule), `deployments` where it is deployed, `services` where one of the newest 5,000 services \
    is built from it; `coverage` is their share of the five, and `status` `complete`, `partial` or \
    `missing`. Sources of kind `mcp` and `evidence` are those that sent evidence; their signals \
    are the kinds of records they sent, `coverage` the accepted share of the latest envelope. \
    `coverage_gaps` lists the signals that the listed repositories lack.";

/// Maximum number of snapshots of the workspace context that are stored; older ones are deleted.
const KEPT: u64 = 200;

/// Maximum number of old snapshots that one renewal of the context deletes.
const PRUNED: u32 = 20;

/// A stored snapshot.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredSnapshot {
    content_hash: String,
    /// Time at which the snapshot's content last became the current one.
    generated_at: Timestamp,
    #[serde(flatten)]
    content: ContextContent,
}

document!(StoredSnapshot, "snapshots");

/// The workspace context: a snapshot of the workspace's records.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WorkspaceContext {
    id: Uuid,
    #[serde(flatten)]
    snapshot: StoredSnapshot,
}

impl From<Stored<StoredSnapshot>> for WorkspaceContext {
    fn from(stored: Stored<StoredSnapshot>) -> Self {
        Self { id: stored.uuid(), snapshot: stored.value }
    }
}

/// Returns a UUIDv8 (RFC 9562) derived from the workspace and the text.
pub(crate) fn id_of(scope: &Scope, text: &str) -> Uuid {
    let named = [scope.workspace_id().as_bytes(), text.as_bytes()].concat();
    let digest = scope.sha256(&named);
    let mut bytes: [u8; 16] = std::array::from_fn(|at| digest.get(at).copied().unwrap_or_default());
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uuid::from_bytes(bytes)
}

/// Returns the id of a snapshot: a UUIDv7 (RFC 9562) with the time of the workspace's id and bits
/// derived from the content. Equal content always has the same id, even before it is stored.
fn snapshot_id(scope: &Scope, content_hash: &str) -> Uuid {
    let mut bytes = *id_of(scope, content_hash).as_bytes();
    bytes[..6].copy_from_slice(&scope.workspace_id().as_bytes()[..6]);
    bytes[6] = bytes[6] & 0x0f | 0x70;
    Uuid::from_bytes(bytes)
}

/// Computes the current content of the workspace context, and its hash.
fn compute(scope: &Scope) -> Result<StoredSnapshot, DocumentError> {
    let content = content::compute(scope)?;
    let canonical = serde_json_canonicalizer::to_vec(&content).expect("content is plain data");
    let content_hash = scope.sha256_hex(&canonical);
    Ok(StoredSnapshot { content_hash, generated_at: scope.now(), content })
}

fn newest(scope: &Scope) -> Result<Option<Stored<StoredSnapshot>>, DocumentError> {
    scope.documents::<StoredSnapshot>().query().descending("generated_at").first()
}

/// Stores a snapshot of the current workspace context, unless the newest snapshot has equal
/// content.
pub(crate) fn renew(scope: &Scope) -> Result<(), DocumentError> {
    let snapshot = compute(scope)?;
    let snapshots = scope.documents::<StoredSnapshot>();
    if newest(scope)?.is_some_and(|newest| newest.content_hash == snapshot.content_hash) {
        return Ok(());
    }
    let id = snapshot_id(scope, &snapshot.content_hash);
    match snapshots.find(id)? {
        // An older snapshot has the same content; it becomes the newest.
        Some(mut before) => {
            before.generated_at = snapshot.generated_at;
            snapshots.replace(&mut before)?;
        }
        None => snapshots.create(id, &snapshot)?,
    }
    prune(scope)
}

/// Deletes the oldest snapshots if more than the maximum number is stored.
fn prune(scope: &Scope) -> Result<(), DocumentError> {
    let snapshots = scope.documents::<StoredSnapshot>();
    let beyond = snapshots.query().count()?.saturating_sub(KEPT);
    if beyond == 0 {
        return Ok(());
    }
    let most = u32::try_from(beyond).unwrap_or(PRUNED).min(PRUNED);
    snapshots.query().ascending("generated_at").limit(most).delete_page().map(drop)
}

pub(crate) fn current(ctx: &Ctx) -> Result<Versioned<WorkspaceContext>> {
    if let Some(newest) = newest(ctx)? {
        return Ok(versioned(newest.into()));
    }
    // No event has created a snapshot yet.
    let snapshot = compute(ctx)?;
    let id = snapshot_id(ctx, &snapshot.content_hash);
    Ok(versioned(WorkspaceContext { id, snapshot }))
}

/// Returns a snapshot with its version: the first 64 bits of its content's hash.
fn versioned(context: WorkspaceContext) -> Versioned<WorkspaceContext> {
    let digits = context.snapshot.content_hash.get(..16).unwrap_or_default();
    let version = u64::from_str_radix(digits, 16).unwrap_or_default();
    Versioned(context, version)
}

/// A snapshot in a list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SnapshotSummary {
    id: Uuid,
    content_hash: String,
    generated_at: Timestamp,
}

pub(crate) fn list(ctx: &Ctx, paging: Paging<20, 50>) -> Result<Page<SnapshotSummary>> {
    let all = ctx.documents::<StoredSnapshot>().query().descending("generated_at");
    let page = all.paging(paging).page()?;
    Ok(page.map(|stored| SnapshotSummary {
        id: stored.uuid(),
        content_hash: stored.value.content_hash,
        generated_at: stored.value.generated_at,
    }))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<WorkspaceContext>> {
    Ok(versioned(ctx.documents::<StoredSnapshot>().get(id)?.into()))
}
