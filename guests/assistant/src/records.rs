//! Members of other areas' documents that the assistant reads. Absent members are empty and are not
//! mentioned in answers.

use area_sdk::prelude::*;

/// A finding of a scanner.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Finding {
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) risk_severity: String,
    pub(crate) rule_id: String,
    pub(crate) state: String,
    pub(crate) title: String,
    pub(crate) tool: String,
}

impl Document for Finding {
    const COLLECTION: &'static str = "control_room.findings";
}

/// An audit of a repository.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Audit {
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) commit_sha: Option<String>,
    pub(crate) completed_at: Option<Timestamp>,
}

impl Document for Audit {
    const COLLECTION: &'static str = "schedules.audits";
}

/// A component of the dependency inventory.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Component {
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) ecosystem: Option<String>,
}

impl Document for Component {
    const COLLECTION: &'static str = "dependencies.components";
}

/// The latest audit of a repository's branch; only counted.
#[derive(Serialize, Deserialize)]
pub(crate) struct LatestBranchAudit {}

impl Document for LatestBranchAudit {
    const COLLECTION: &'static str = "dependencies.heads";
}

/// A match of an advisory with a component that it affects, under one name of the advisory.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AdvisoryMatch {
    pub(crate) advisory_key: String,
    pub(crate) component_id: String,
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) ecosystem: Option<String>,
}

impl Document for AdvisoryMatch {
    const COLLECTION: &'static str = "dependencies.matches";
}

/// An advisory; only counted.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Advisory {}

impl Document for Advisory {
    const COLLECTION: &'static str = "dependencies.advisories";
}

/// A deployment; only counted.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Deployment {}

impl Document for Deployment {
    const COLLECTION: &'static str = "dependencies.deployments";
}

/// A questionnaire.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Questionnaire {
    pub(crate) title: String,
    pub(crate) question_count: u64,
    pub(crate) approved_count: u64,
}

impl Document for Questionnaire {
    const COLLECTION: &'static str = "questionnaires.questionnaires";
}

/// A question of a questionnaire; only counted.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Question {}

impl Document for Question {
    const COLLECTION: &'static str = "questionnaires.questions";
}

/// A remediation program; only counted.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RemediationProgram {}

impl Document for RemediationProgram {
    const COLLECTION: &'static str = "remediation.programs";
}
