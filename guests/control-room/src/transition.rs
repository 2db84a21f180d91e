//! Transitions of findings. They are written once and never changed. Each transition increments the
//! finding's lifecycle version and supersedes the previous transition.

use area_sdk::Scope;
use area_sdk::prelude::*;
use serde_json::{Map, Value};

use crate::finding::Finding;
use crate::state::FindingState;

/// A transition of a finding from one state to another.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Transition")]
pub(crate) struct TransitionRecord {
    /// Id of the user who made the transition of the finding; null if the service did.
    pub(crate) actor_id: Option<Uuid>,
    pub(crate) created_at: Timestamp,
    pub(crate) evidence_ids: Vec<Uuid>,
    /// Time at which the acceptance of the finding's risk ends; null for states other than
    /// `accepted_risk`.
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) finding_id: Uuid,
    /// The finding's state before the transition; null for the first transition.
    pub(crate) from_state: Option<FindingState>,
    pub(crate) id: Uuid,
    pub(crate) metadata_json: Map<String, Value>,
    pub(crate) reason: Option<String>,
    /// Id of the finding's previous transition; null for the first.
    pub(crate) supersedes_transition_id: Option<Uuid>,
    pub(crate) to_state: FindingState,
    /// Id of the audit that caused the transition, because it reported the finding or did not
    /// report it any more.
    pub(crate) verification_audit_id: Option<Uuid>,
    pub(crate) version: i64,
}

/// A stored transition of a finding, with the values that the database counts.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredTransition {
    #[serde(flatten)]
    pub(crate) record: TransitionRecord,
    /// Whole hours from the beginning of the finding's lifecycle to the transition;
    /// `elapsed_seconds` has the remaining seconds. They are separate because the database counts
    /// how often each value occurs, and each has few values.
    pub(crate) elapsed_hours: i64,
    pub(crate) elapsed_seconds: i64,
    /// Whether the transition is a user's first decision about the finding since the finding was
    /// opened.
    pub(crate) decision: bool,
    pub(crate) by_person: bool,
}

document!(StoredTransition, "transitions");

/// A requested change of a finding's state, from which a transition is made.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingTransition {
    pub(crate) to: FindingState,
    pub(crate) actor_id: Option<Uuid>,
    pub(crate) reason: Option<String>,
    pub(crate) evidence_ids: Vec<Uuid>,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) audit_id: Option<Uuid>,
}

impl PendingTransition {
    /// Returns a change of a finding's state that the service makes because of an audit.
    pub(crate) fn by_audit(
        to: FindingState,
        audit_id: Uuid,
        reason: &str,
        evidence: &[Uuid],
    ) -> Self {
        Self {
            to,
            reason: Some(reason.to_owned()),
            evidence_ids: evidence.to_vec(),
            audit_id: Some(audit_id),
            ..Self::default()
        }
    }
}

/// Changes the state of the finding and returns the transition to store. The caller has checked
/// that the transition is allowed.
pub(crate) fn pass(
    scope: &Scope,
    finding_id: Uuid,
    finding: &mut Finding,
    change: PendingTransition,
) -> StoredTransition {
    let (id, now) = (scope.new_id(), scope.now());
    let from = (finding.lifecycle_version > 0).then_some(finding.state);
    let elapsed = now.seconds_since(finding.lifecycle_started_at).max(0);
    let by_person = change.actor_id.is_some();
    let decision = by_person && from.is_some_and(FindingState::awaits_decision);
    let superseded = finding.last_transition_id;
    finding.enter(change.to, change.expires_at, now, by_person);
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
    /// Sets the finding's state. Reopening a settled finding starts a new lifecycle; reopening a
    /// remediated one continues the lifecycle.
    fn enter(
        &mut self,
        to: FindingState,
        accepted_until: Option<Timestamp>,
        now: Timestamp,
        by_person: bool,
    ) {
        if !self.state.is_open() && to.is_open() {
            self.lifecycle_started_at = now;
            self.expect_next_run(now, by_person);
        }
        self.state = to;
        self.open = to.is_open();
        self.lifecycle_version += 1;
        self.lifecycle_updated_at = now;
        self.accepted_until = accepted_until;
        self.suppressed = false;
        if to != FindingState::Duplicate {
            self.duplicate_of = None;
        }
        self.set_due_date();
    }

    /// Marks a finding that was gone as present, so that the next run of its analysis decides about
    /// it again. Files from before a person reopened the finding do not contradict that person.
    fn expect_next_run(&mut self, now: Timestamp, by_person: bool) {
        if self.present {
            return;
        }
        (self.present, self.gone_at) = (true, None);
        if by_person {
            self.shown_at = self.shown_at.max(Some(now));
        }
    }
}
