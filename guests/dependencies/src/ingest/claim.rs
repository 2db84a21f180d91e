//! The head of a repository's branch: the latest audit whose import has ended. The components of
//! that audit are the branch's inventory. An import becomes the head when all its components are
//! stored. Of two concurrent imports, that of the later audit becomes the head, whichever ends
//! first.

use area_sdk::prelude::*;
use area_sdk::{JobError, Scope};

use super::{AuditStarted, ImportCounts};
use crate::deployments::document::{LatestCommitAudit, commit_key};
use crate::documents::put;

/// The head of a repository's branch, which is the audit whose components are the branch's
/// inventory, and former heads whose components are still marked as latest.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BranchHead")]
pub(crate) struct BranchInventoryHead {
    pub(super) repository_id: Uuid,
    pub(super) branch_ref: Option<String>,
    pub(crate) audit_id: Uuid,
    pub(super) started_at: Timestamp,
    /// Ids of former audits of the branch whose components are still marked as latest.
    pub(super) former: Vec<Uuid>,
    /// Number of components in the branch's inventory; 0 if an older version stored the head. Other
    /// areas add these numbers up, because counting a million rows would take a second.
    #[serde(default)]
    pub(super) components: usize,
    /// Whether an SBOM of this or an earlier audit of the branch had a report of a scanner or a VEX
    /// statement, so that an SBOM without any has no vulnerability. False if an older version
    /// stored the head.
    #[serde(default)]
    pub(super) is_scanned: bool,
}

document!(BranchInventoryHead, "heads");

impl BranchInventoryHead {
    fn is_later_than(&self, audit: &AuditStarted) -> bool {
        (self.started_at, self.audit_id) > (audit.started_at, audit.audit_id)
    }
}

/// Returns the id of the document that stores the head of a repository's branch.
pub(crate) fn head_id(scope: &Scope, repository_id: Uuid, branch_ref: Option<&str>) -> String {
    let branch = branch_ref.unwrap_or_default();
    scope.sha256_hex(format!("{repository_id}\n{branch}").as_bytes())
}

impl AuditStarted {
    /// Returns the document id of the head of the audit's branch.
    pub(super) fn head_id(&self, ctx: &JobCtx) -> String {
        head_id(ctx, self.repository_id, self.branch_ref.as_deref())
    }

    /// Returns the head of the audit's branch; `None` if the branch has none.
    pub(super) fn head(
        &self,
        ctx: &JobCtx,
    ) -> Result<Option<Stored<BranchInventoryHead>>, JobError> {
        Ok(ctx.documents::<BranchInventoryHead>().find(self.head_id(ctx))?)
    }

    /// Whether the branch's head is not a later audit than this one.
    pub(super) fn may_become_head(&self, ctx: &JobCtx) -> Result<bool, JobError> {
        Ok(self.head(ctx)?.is_none_or(|head| !head.is_later_than(self)))
    }

    /// Makes the audit the head of its branch, unless a later audit is. The caller has stored all
    /// components of the audit.
    pub(super) fn become_head(&self, ctx: &JobCtx, tally: &ImportCounts) -> Result<(), JobError> {
        let (components, is_scanned) = (tally.total, tally.is_reported);
        let Some(mut head) = self.head(ctx)? else {
            let head = BranchInventoryHead {
                repository_id: self.repository_id,
                branch_ref: self.branch_ref.clone(),
                audit_id: self.audit_id,
                started_at: self.started_at,
                former: Vec::new(),
                components,
                is_scanned,
            };
            return Ok(ctx.documents().create(self.head_id(ctx), &head)?);
        };
        if head.is_later_than(self) {
            head.former.push(self.audit_id);
        } else {
            let before = std::mem::replace(&mut head.audit_id, self.audit_id);
            // Older versions made an import the head when it began.
            if before != self.audit_id {
                head.former.push(before);
            }
            head.started_at = self.started_at;
            head.components = components;
        }
        head.is_scanned |= is_scanned;
        Ok(ctx.documents().replace(&mut head)?)
    }

    /// Stores this audit as the latest one with an SBOM of a commit, unless a later audit is
    /// stored.
    pub(super) fn note_commit(&self, ctx: &JobCtx, commit_sha: &str) -> Result<(), JobError> {
        let id = commit_key(self.repository_id, commit_sha);
        let new = LatestCommitAudit { audit_id: self.audit_id, started_at: self.started_at };
        match ctx.documents::<LatestCommitAudit>().find(&id)? {
            Some(known) if known.started_at >= self.started_at => Ok(()),
            known => Ok(put(ctx, &id, known, new)?),
        }
    }
}
