//! Transitions: written once, never changed. Each makes the finding's lifecycle
//! one version older and supersedes the one before.

use area_sdk::Scope;
use area_sdk::prelude::*;
use serde_json::{Map, Value};

use crate::finding::Finding;
use crate::state::State;

/// A step of a finding's lifecycle.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TransitionRecord {
    /// Null where the service did it.
    pub(crate) actor_id: Option<Uuid>,
    pub(crate) created_at: Timestamp,
    pub(crate) evidence_ids: Vec<Uuid>,
    /// When an accepted risk is to be looked at again.
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) finding_id: Uuid,
    /// Null for the first.
    pub(crate) from_state: Option<State>,
    pub(crate) id: Uuid,
    pub(crate) metadata_json: Map<String, Value>,
    pub(crate) reason: Option<String>,
    /// The finding's transition before.
    pub(crate) supersedes_transition_id: Option<Uuid>,
    pub(crate) to_state: State,
    /// The audit that saw the finding, or saw that it is gone.
    pub(crate) verification_audit_id: Option<Uuid>,
    pub(crate) version: i64,
}

/// A transition as it is kept, with what is counted.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredTransition {
    #[serde(flatten)]
    pub(crate) record: TransitionRecord,
    /// Since the lifecycle began: whole hours, and the seconds beyond them.
    /// Apart, because the database counts how often a value occurs, and there
    /// are few of each.
    pub(crate) elapsed_hours: i64,
    pub(crate) elapsed_seconds: i64,
    /// Did a person take it, and was it the first look?
    pub(crate) decision: bool,
    pub(crate) by_person: bool,
}

impl Document for StoredTransition {
    const COLLECTION: &'static str = "transitions";
}

/// What is wanted of a finding.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) to: State,
    pub(crate) actor_id: Option<Uuid>,
    pub(crate) reason: Option<String>,
    pub(crate) evidence_ids: Vec<Uuid>,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) audit_id: Option<Uuid>,
}

impl Change {
    /// By the service, because of an audit.
    pub(crate) fn by_audit(to: State, audit_id: Uuid, reason: &str, evidence: &[Uuid]) -> Self {
        Self {
            to,
            actor_id: None,
            reason: Some(reason.to_owned()),
            evidence_ids: evidence.to_vec(),
            expires_at: None,
            metadata: Map::new(),
            audit_id: Some(audit_id),
        }
    }
}

/// Leads a finding on and makes the record of it. Whether it may be led there
/// has been looked at.
pub(crate) fn pass(
    scope: &Scope,
    finding_id: Uuid,
    finding: &mut Finding,
    change: Change,
) -> StoredTransition {
    let (id, now) = (scope.new_id(), scope.now());
    let from = (finding.lifecycle_version > 0).then_some(finding.state);
    let elapsed = now.seconds_since(finding.lifecycle_started_at).max(0);
    let by_person = change.actor_id.is_some();
    let decision = by_person && from.is_some_and(State::awaits_decision);
    let superseded = finding.last_transition_id;
    finding.enter(change.to, change.expires_at, now);
    finding.last_transition_id = Some(id);
    finding.auto_disposition = !by_person;
    StoredTransition {
        record: TransitionRecord {
            actor_id: change.actor_id,
            created_at: now,
            evidence_ids: change.evidence_ids,
            expires_at: change.expires_at,
            finding_id,
            from_state: from,
            id,
            metadata_json: change.metadata,
            reason: change.reason,
            supersedes_transition_id: superseded,
            to_state: change.to,
            verification_audit_id: change.audit_id,
            version: finding.lifecycle_version,
        },
        elapsed_hours: elapsed / 3600,
        elapsed_seconds: elapsed % 3600,
        decision,
        by_person,
    }
}

impl Finding {
    /// Stands in another state. Settled once and reopened, it begins anew; a
    /// remedy that did not hold goes on counting.
    fn enter(&mut self, to: State, accepted_until: Option<Timestamp>, now: Timestamp) {
        if !self.state.is_open() && to.is_open() {
            self.lifecycle_started_at = now;
        }
        self.state = to;
        self.open = to.is_open();
        self.lifecycle_version += 1;
        self.lifecycle_updated_at = now;
        self.accepted_until = accepted_until;
        self.suppressed = false;
        if to != State::Duplicate {
            self.duplicate_of = None;
        }
        self.set_due_date();
    }
}
