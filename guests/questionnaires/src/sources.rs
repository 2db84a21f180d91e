//! Documents of other areas that can be cited, with the members that this area reads.

use area_sdk::Scope;
use area_sdk::prelude::*;
use area_shared::catalog::Repository;
use area_shared::evidence::EvidenceRecord;

/// An audit of a repository.
#[derive(Serialize, Deserialize)]
pub(crate) struct Audit {
    pub(crate) repository_id: Uuid,
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) commit_sha: Option<String>,
    #[serde(default)]
    pub(crate) completed_at: Option<Timestamp>,
}

impl Document for Audit {
    const COLLECTION: &'static str = "schedules.audits";
}

/// State of audits that can be cited.
const COMPLETED: &str = "completed";

/// Returns a completed audit and its completion time.
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

/// Returns the repository's latest completed audit.
pub(crate) fn latest_audit(scope: &Scope, repository: Uuid) -> Result<Option<Stored<Audit>>> {
    let audits = scope.documents::<Audit>().query().equals("repository_id", repository);
    Ok(audits.equals("state", COMPLETED).descending("started_at").first()?)
}

/// Returns the latest evidence of this kind on this subject.
pub(crate) fn latest_evidence(
    scope: &Scope,
    subject: &str,
    kind: &str,
) -> Result<Option<Stored<EvidenceRecord>>> {
    let records = scope.documents::<EvidenceRecord>().query().equals("subject_key", subject);
    Ok(records.equals("kind", kind).descending("observed_at").first()?)
}

/// Returns a repository's name; its id if it is not registered.
pub(crate) fn repository_name(scope: &Scope, id: Uuid) -> Result<String> {
    let found = scope.documents::<Repository>().find(id)?;
    Ok(found.map_or_else(|| id.to_string(), |repository| repository.value.name))
}
