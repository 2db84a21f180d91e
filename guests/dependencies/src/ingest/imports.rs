//! Imports that lists report: running ones, failed ones, and those that left files out. Until an
//! import ends, lists show the former inventory; the report shows clients that it is not the
//! latest.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobError, Scope, Value};

use super::AuditStarted;
use crate::documents::put;

/// State of the import of an audit's SBOMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ImportState {
    /// The import is still storing the components of the audit's SBOMs.
    Running,
    /// The import failed: none of its SBOMs could be imported.
    Failed,
    /// The components of the import are the inventory, but some of its files could not be imported.
    Incomplete,
    /// A later import replaced this one, whose components are being deleted.
    Superseded,
}

/// An import of an audit's SBOMs that has not ended, failed, or left files out; the document's id
/// is the audit's.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredImport {
    pub(super) repository_id: Uuid,
    pub(super) branch_ref: Option<String>,
    pub(super) started_at: Timestamp,
    pub(super) state: ImportState,
    /// Reasons why the import failed, or errors of the files that it left out.
    pub(super) details: Vec<String>,
}

document!(StoredImport, "imports");

/// Maximum number of errors stored with an import of SBOMs.
const MOST_DETAILS: usize = 5;
/// Maximum number of running, failed or incomplete imports that a list of dependencies reports.
const MOST_REPORTED: usize = 20;
/// Age of a running import of SBOMs, in seconds, from which it counts as lost.
const LOST_AFTER: i64 = 86_400;

impl StoredImport {
    fn new(audit: &AuditStarted, state: ImportState) -> Self {
        Self {
            repository_id: audit.repository_id,
            branch_ref: audit.branch_ref.clone(),
            started_at: audit.started_at,
            state,
            details: Vec::new(),
        }
    }

    /// Whether lists that include earlier audits hide the components of this import.
    pub(crate) fn is_hidden(&self) -> bool {
        self.state != ImportState::Incomplete
    }

    fn limitation(&self, audit_id: &str) -> Option<String> {
        let details = self.details.join(" ");
        let place = match &self.branch_ref {
            Some(branch) => format!("repository {}, branch {branch}", self.repository_id),
            None => format!("repository {}", self.repository_id),
        };
        match self.state {
            ImportState::Running => Some(format!(
                "The import of audit {audit_id} ({place}, started {}) has not ended; its \
                dependencies are not listed yet. Lists show those of the previous import, if \
                any.",
                self.started_at
            )),
            ImportState::Failed => Some(format!(
                "The import of audit {audit_id} ({place}) failed; lists show the dependencies of \
                the previous import, if any. {details}"
            )),
            ImportState::Incomplete => Some(format!(
                "The import of audit {audit_id} ({place}) left files out; their dependencies are \
                 not listed. {details}"
            )),
            ImportState::Superseded => None,
        }
    }
}

impl AuditStarted {
    /// Stores that the import of this audit's SBOMs runs, unless a state of it is stored.
    pub(super) fn open_import(&self, ctx: &JobCtx) -> Result<(), JobError> {
        if ctx.documents::<StoredImport>().find(self.audit_id)?.is_some() {
            return Ok(());
        }
        let import = StoredImport::new(self, ImportState::Running);
        Ok(ctx.documents().create(self.audit_id, &import)?)
    }

    /// Stores the result of this audit's import. If its components became the inventory, marks
    /// earlier imports of the branch that have ended as superseded.
    pub(super) fn close_import(
        &self,
        ctx: &JobCtx,
        brought_inventory: bool,
        mut refused: Vec<String>,
    ) -> Result<(), JobError> {
        let state = match (refused.is_empty(), brought_inventory) {
            (true, _) => None,
            (false, true) => Some(ImportState::Incomplete),
            (false, false) => Some(ImportState::Failed),
        };
        let more = refused.len().saturating_sub(MOST_DETAILS);
        if more > 0 {
            refused.truncate(MOST_DETAILS);
            refused.push(format!("{more} more files; see the audit."));
        }
        self.replace_import(ctx, state, refused)?;
        if brought_inventory {
            self.supersede_earlier(ctx)?;
        }
        Ok(())
    }

    fn replace_import(
        &self,
        ctx: &JobCtx,
        state: Option<ImportState>,
        details: Vec<String>,
    ) -> Result<(), JobError> {
        let documents = ctx.documents::<StoredImport>();
        match (documents.find(self.audit_id)?, state) {
            (None, None) => {}
            (Some(known), None) => documents.delete(&known)?,
            (known, Some(state)) => {
                let import = StoredImport { details, ..StoredImport::new(self, state) };
                put(ctx, &self.audit_id.to_string(), known, import)?;
            }
        }
        Ok(())
    }

    fn supersede_earlier(&self, ctx: &JobCtx) -> Result<(), JobError> {
        let lost = ctx.now().plus_seconds(-LOST_AFTER);
        for mut import in of_branch(ctx, self)? {
            let earlier = import.started_at < self.started_at;
            let has_ended = import.state != ImportState::Running || import.started_at < lost;
            match import.state {
                ImportState::Incomplete if earlier => ctx.documents().delete(&import)?,
                ImportState::Superseded => {}
                _ if earlier && has_ended => {
                    import.state = ImportState::Superseded;
                    ctx.documents().replace(&mut import)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns a superseded import of the audit's branch, whose components must be deleted; `None`
    /// if there is none.
    pub(super) fn superseded(
        &self,
        ctx: &JobCtx,
    ) -> Result<Option<Stored<StoredImport>>, JobError> {
        Ok(of_branch(ctx, self)?.into_iter().find(|import| import.state == ImportState::Superseded))
    }
}

fn of_branch(ctx: &JobCtx, audit: &AuditStarted) -> Result<Vec<Stored<StoredImport>>, JobError> {
    let imports = ctx.documents::<StoredImport>().query();
    let imports = imports.equals("repository_id", audit.repository_id);
    let branch = audit.branch_ref.as_ref().map_or(Value::Null, Value::from);
    Ok(imports.equals("branch_ref", branch).limit(100).list()?)
}

/// Returns the limitations that a list of dependencies shows about running, failed and incomplete
/// imports: those of one repository or branch, or all.
pub(crate) fn limitations(
    scope: &Scope,
    repository_id: Option<Uuid>,
    branch_ref: Option<&str>,
) -> Result<Vec<String>, DocumentError> {
    let imports = scope.documents::<StoredImport>().query();
    let imports = imports.equals_if("repository_id", repository_id);
    let imports = imports.equals_if("branch_ref", branch_ref).limit(100).page()?;
    let more = imports.next_cursor.is_some();
    let found = imports.items.iter().filter_map(|import| import.limitation(&import.id));
    let mut found: Vec<String> = found.collect();
    if more || found.len() > MOST_REPORTED {
        found.truncate(MOST_REPORTED);
        found.push(format!(
            "More than {MOST_REPORTED} imports have not ended, failed, or left files out; \
             `repository_id` lists those of one repository."
        ));
    }
    Ok(found)
}
