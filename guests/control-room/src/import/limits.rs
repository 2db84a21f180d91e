//! Limitations of an audit: files that the latest audit of a branch skipped or could not read, and
//! analyses whose findings it did not check. Lists of findings include them, because a finding may
//! be missing only because no run checked for it.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobError, Scope};

use super::FindingImportJob;
use super::analysis::id_of;

/// Maximum number of limitations that are stored for one audit.
const MOST_KEPT: usize = 50;
/// Maximum number of branches whose limitations a list of findings returns.
const MOST_BRANCHES: u32 = 20;

/// Limitations of the latest audit of a branch: what its scans skipped or did not check.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ScanLimitations")]
pub(crate) struct BranchScanLimitations {
    repository_id: Uuid,
    branch_ref: String,
    audit_id: Uuid,
    started_at: Timestamp,
    /// Whether the audit has any limitations; queries select by it.
    limited: bool,
    limitations: Vec<String>,
}

document!(BranchScanLimitations, "scan_limitations");

/// Returns the warnings of an import of findings. Those about skipped and old files come first,
/// because an audit stores a limited number of warnings.
pub(super) fn warnings(job: &FindingImportJob) -> Vec<String> {
    let set_aside = job.parts.iter().filter_map(super::PresentAnalysis::set_aside_warning);
    let kept_open = job.parts.iter().filter_map(super::PresentAnalysis::kept_open_warning);
    set_aside.chain(kept_open).chain(job.tally.warnings.iter().cloned()).collect()
}

/// Stores the limitations of this audit, unless a later audit of the branch has stored its own.
pub(super) fn keep(
    ctx: &JobCtx,
    job: &FindingImportJob,
    warnings: &[String],
) -> Result<(), JobError> {
    let branch_ref = job.branch()?;
    let repository_id = job.audit.repository_id;
    let latest = BranchScanLimitations {
        repository_id,
        audit_id: job.audit.audit_id,
        started_at: job.audit.started_at,
        limited: !warnings.is_empty() || !job.tally.errors.is_empty(),
        limitations: texts(job, warnings),
        branch_ref,
    };
    let id = id_of(&(repository_id, &latest.branch_ref));
    match ctx.documents::<BranchScanLimitations>().find(&id)? {
        None => ctx.documents().create(&id, &latest)?,
        Some(kept) if kept.started_at > latest.started_at => {}
        Some(mut kept) => {
            kept.value = latest;
            ctx.documents().replace(&mut kept)?;
        }
    }
    Ok(())
}

fn texts(job: &FindingImportJob, warnings: &[String]) -> Vec<String> {
    let errors = job.tally.errors.iter().map(|error| match error.upload_id {
        Some(upload) => format!("Upload {upload} was not imported: {}", error.detail),
        None => error.detail.clone(),
    });
    let mut texts: Vec<String> = errors.chain(warnings.iter().cloned()).collect();
    let all = texts.len() + job.tally.more_warnings + job.tally.more_errors;
    let more = all.saturating_sub(MOST_KEPT);
    if more > 0 {
        texts.truncate(MOST_KEPT);
        texts.push(format!("{more} more; see the audit."));
    }
    texts
}

/// Returns the limitations that lists of findings show: those of the latest audits of one
/// repository, or of all repositories for `None`.
pub(crate) fn shown(scope: &Scope, repository: Option<Uuid>) -> Result<Vec<String>, DocumentError> {
    let some = scope.documents::<BranchScanLimitations>().query().equals("limited", true);
    let page = some.equals_if("repository_id", repository).limit(MOST_BRANCHES).page()?;
    let one = |kept: &Stored<BranchScanLimitations>| {
        let BranchScanLimitations { repository_id, branch_ref, audit_id, limitations, .. } =
            &kept.value;
        let place =
            format!("Repository {repository_id}, branch {branch_ref:?}, audit {audit_id}: ");
        limitations.iter().map(|text| format!("{place}{text}")).collect::<Vec<_>>()
    };
    let mut shown: Vec<String> = page.items.iter().flat_map(one).collect();
    if page.next_cursor.is_some() {
        shown.push("More repositories have limitations; filter by `repository_id`.".to_owned());
    }
    Ok(shown)
}
