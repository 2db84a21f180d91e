//! What can be cited: the documents of other areas, as far as this one reads
//! them.

use area_sdk::Scope;
use area_sdk::prelude::*;

/// An accepted record of evidence; the id is its `evidence_id`.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Evidence {
    pub(crate) kind: String,
    pub(crate) subject_key: String,
    pub(crate) content_sha256: String,
    pub(crate) observed_at: Timestamp,
    pub(crate) summary: String,
    pub(crate) source_ref: String,
}

impl Document for Evidence {
    const COLLECTION: &'static str = "evidence.records";
}

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

/// A repository, for its name.
#[derive(Serialize, Deserialize)]
pub(crate) struct Repository {
    name: String,
}

impl Document for Repository {
    const COLLECTION: &'static str = "catalog.repositories";
}

/// The state of an audit that can be cited.
const COMPLETED: &str = "completed";

/// The audit, if it is completed, and when.
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

/// The repository's latest completed audit.
pub(crate) fn latest_audit(scope: &Scope, repository: Uuid) -> Result<Option<Stored<Audit>>> {
    let audits = scope.documents::<Audit>().query().equals("repository_id", repository);
    Ok(audits.equals("state", COMPLETED).descending("started_at").first()?)
}

/// The latest evidence of this kind about this subject.
pub(crate) fn latest_evidence(
    scope: &Scope,
    subject: &str,
    kind: &str,
) -> Result<Option<Stored<Evidence>>> {
    let records = scope.documents::<Evidence>().query().equals("subject_key", subject);
    Ok(records.equals("kind", kind).descending("observed_at").first()?)
}

/// What a repository is called; its id where it is not registered any more.
pub(crate) fn repository_name(scope: &Scope, id: Uuid) -> Result<String> {
    let found = scope.documents::<Repository>().find(id)?;
    Ok(found.map_or_else(|| id.to_string(), |repository| repository.value.name))
}
