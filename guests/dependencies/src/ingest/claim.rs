//! The head of a repository's branch: the latest audit that had a bill of
//! materials. Of two imports at once, the later audit's is latest, whichever
//! finishes first.

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::Audit;
use crate::deployments::document::{AuditedCommit, commit_key};

/// The latest audit of a branch, and those whose components still say so too.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Head {
    pub(super) repository_id: Uuid,
    pub(super) branch_ref: Option<String>,
    pub(super) audit_id: Uuid,
    pub(super) started_at: Timestamp,
    /// Audits whose components are to be marked as no longer latest.
    pub(super) former: Vec<Uuid>,
    /// How many components the branch has: those of the latest audit whose
    /// import has ended. Others add them up; counted row by row, a million
    /// would take a second. None where an earlier version wrote the head.
    #[serde(default)]
    pub(super) components: usize,
}

impl Document for Head {
    const COLLECTION: &'static str = "heads";
}

/// The id of a branch's head.
pub(super) fn head_id(ctx: &JobCtx, repository_id: Uuid, branch_ref: Option<&str>) -> String {
    let branch = branch_ref.unwrap_or_default();
    ctx.sha256_hex(format!("{repository_id}\n{branch}").as_bytes())
}

impl Audit {
    /// The id of the branch's head.
    pub(super) fn head_id(&self, ctx: &JobCtx) -> String {
        head_id(ctx, self.repository_id, self.branch_ref.as_deref())
    }

    /// Whether this audit is the branch's latest, at this moment.
    pub(super) fn is_head(&self, ctx: &JobCtx) -> Result<bool, JobError> {
        let head = ctx.documents::<Head>().find(self.head_id(ctx))?;
        Ok(head.is_some_and(|head| head.audit_id == self.audit_id))
    }

    /// Becomes the head, unless a later audit is.
    pub(super) fn claim(&self, ctx: &JobCtx) -> Result<(), JobError> {
        let id = self.head_id(ctx);
        let Some(mut head) = ctx.documents::<Head>().find(&id)? else {
            let head = Head {
                repository_id: self.repository_id,
                branch_ref: self.branch_ref.clone(),
                audit_id: self.audit_id,
                started_at: self.started_at,
                former: Vec::new(),
                components: 0,
            };
            return Ok(ctx.documents().create(id, &head)?);
        };
        let later = (head.started_at, head.audit_id) < (self.started_at, self.audit_id);
        if later {
            let former = std::mem::replace(&mut head.audit_id, self.audit_id);
            head.former.push(former);
            head.started_at = self.started_at;
            ctx.documents().replace(&mut head)?;
        }
        Ok(())
    }

    /// Notes how many components this audit has brought, if it is the head.
    pub(super) fn note_components(&self, ctx: &JobCtx, components: usize) -> Result<(), JobError> {
        match ctx.documents::<Head>().find(self.head_id(ctx))? {
            Some(mut head) if head.audit_id == self.audit_id => {
                head.components = components;
                Ok(ctx.documents().replace(&mut head)?)
            }
            _ => Ok(()),
        }
    }

    /// Notes that this audit looked at a commit, unless a later one did.
    pub(super) fn note_commit(&self, ctx: &JobCtx, commit_sha: &str) -> Result<(), JobError> {
        let id = commit_key(self.repository_id, commit_sha);
        let new = AuditedCommit { audit_id: self.audit_id, started_at: self.started_at };
        match ctx.documents::<AuditedCommit>().find(&id)? {
            None => Ok(ctx.documents().create(id, &new)?),
            Some(mut known) if known.started_at < self.started_at => {
                known.value = new;
                Ok(ctx.documents().replace(&mut known)?)
            }
            Some(_) => Ok(()),
        }
    }
}
