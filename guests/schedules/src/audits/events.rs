//! Events about audits.

use area_sdk::prelude::*;
use serde_json::{Map, Value};

use super::document::{AuditInputFile, RepositoryRevision, StoredAudit};

/// Published when an audit has collected its inputs. Each area that takes part in audits then
/// imports them and publishes its result.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditStarted {
    audit_id: Uuid,
    #[serde(flatten)]
    target: RepositoryRevision,
    started_at: Timestamp,
    /// Files of the repository to import, newest first.
    inputs: Vec<AuditInputFile>,
    /// Ids of evidence records of kind `finding` about the repository, newest first, without those
    /// whose content is a SARIF file of the audit.
    records: Vec<Uuid>,
}

event!(AuditStarted, "audit.started");

impl AuditStarted {
    pub(crate) fn of(audit: &Stored<StoredAudit>, started_at: Timestamp) -> Self {
        Self {
            audit_id: audit.uuid(),
            target: audit.target.clone(),
            started_at,
            inputs: audit.inputs.clone(),
            records: audit.records.clone(),
        }
    }
}

/// Data of the events that report the end of an audit.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AuditEnd")]
pub(crate) struct AuditEndPayload {
    audit_id: Uuid,
    #[serde(flatten)]
    target: RepositoryRevision,
    schedule_id: Option<Uuid>,
    /// Error code; null unless the audit failed.
    error_code: Option<String>,
    warnings: Vec<String>,
    facts: Map<String, Value>,
}

impl AuditEndPayload {
    pub(crate) fn of(audit: &Stored<StoredAudit>) -> Self {
        Self {
            audit_id: audit.uuid(),
            target: audit.target.clone(),
            schedule_id: audit.schedule_id,
            error_code: audit.error_code.clone(),
            warnings: audit.warnings.clone(),
            facts: audit.facts.clone(),
        }
    }
}

/// Published when all parts of an audit have ended and the audit has not failed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditCompleted(pub(crate) AuditEndPayload);

event!(AuditCompleted, "audit.completed");

/// Published when an audit failed: no part succeeded, or the findings could not be imported.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditFailed(pub(crate) AuditEndPayload);

event!(AuditFailed, "audit.failed");
