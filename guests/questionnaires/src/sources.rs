//! Documents of other areas that citations refer to, with the members that this area reads.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::catalog::Repository;
use area_shared::evidence::EvidenceRecord;

/// An audit of a repository, from the area `schedules`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Audit {
    pub(crate) repository_id: Uuid,
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) commit_sha: Option<String>,
    #[serde(default)]
    pub(crate) completed_at: Option<Timestamp>,
}

document!(Audit, "schedules.audits");

/// State of an audit that can be cited.
const COMPLETED: &str = "completed";

/// Returns a completed audit and the time of its completion; `None` if it does not exist or is not
/// completed.
pub(crate) fn completed_audit(
    scope: &Scope,
    id: Uuid,
) -> Result<Option<(Stored<Audit>, Timestamp)>> {
    let audit = scope.documents::<Audit>().find(id)?.filter(|audit| audit.state == COMPLETED);
    Ok(audit.map(|audit| {
        let at = audit.completed_at.unwrap_or(audit.updated_at);
        (audit, at)
    }))
}

/// Returns the completed audit of a repository that started last; audits can overlap.
pub(crate) fn latest_audit(
    scope: &Scope,
    repository: Uuid,
) -> Result<Option<Stored<Audit>>, DocumentError> {
    let audits = scope.documents::<Audit>().query().equals("repository_id", repository);
    audits.equals("state", COMPLETED).descending("started_at").first()
}

/// Returns the latest evidence record of a kind about a subject.
pub(crate) fn latest_evidence(
    scope: &Scope,
    subject: &str,
    kind: &str,
) -> Result<Option<Stored<EvidenceRecord>>> {
    let records = scope.documents::<EvidenceRecord>().query().equals("subject_key", subject);
    Ok(records.equals("kind", kind).descending("observed_at").first()?)
}

/// Returns the name of a repository; its id if the catalog does not have it.
pub(crate) fn repository_name(scope: &Scope, id: Uuid) -> Result<String> {
    let found = scope.documents::<Repository>().find(id)?;
    Ok(found.map_or_else(|| id.to_string(), |repository| repository.value.name))
}
