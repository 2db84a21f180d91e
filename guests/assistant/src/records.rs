//! Members of other areas' documents that the assistant reads. Absent members are empty and are not
//! mentioned in answers.

use area_sdk::prelude::*;

/// A finding of a scanner, with the members that the assistant reads.
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

document!(Finding, "control_room.findings");

/// An audit of a repository, with the members that the assistant reads.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Audit {
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) commit_sha: Option<String>,
    pub(crate) completed_at: Option<Timestamp>,
}

document!(Audit, "schedules.audits");

/// A component of the dependency inventory, with the members that the assistant reads.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Component {
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) ecosystem: Option<String>,
}

document!(Component, "dependencies.components");

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

document!(AdvisoryMatch, "dependencies.matches");

/// A questionnaire, with the members that the assistant reads.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Questionnaire {
    pub(crate) title: String,
    pub(crate) question_count: u64,
    pub(crate) approved_count: u64,
}

document!(Questionnaire, "questionnaires.questionnaires");
