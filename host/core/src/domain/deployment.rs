//! The life cycle of an area's version: stored and live versions, the
//! audit log, node reports.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use uuid::Uuid;

use super::time::Timestamp;
use super::words::inline_words;

inline_words! {
    /// Stage of a version in its life cycle.
    pub enum VersionStage, "a stage of a version" {
        /// The version requests more capabilities than are granted and waits
        /// for an operator's approval.
        AwaitingApproval = "awaiting_approval",
        /// The version can be activated.
        Staged = "staged",
        /// The version serves some of the workspaces.
        Canary = "canary",
        /// The version receives copies of requests; its responses are
        /// discarded.
        Shadow = "shadow",
        /// The version serves the area.
        Live = "live",
        /// The version was live until another one replaced it; a rollback can
        /// activate it again.
        Retired = "retired",
        /// The version was rolled back, or removed with its area. Only an
        /// operator who names it can activate it again.
        Withdrawn = "withdrawn",
    }
}

inline_words! {
    /// Action that an entry of the operators' audit log records; most are steps
    /// in the life cycle of a version.
    pub enum AuditAction, "a step of a version" {
        /// The component was received.
        Received = "received",
        /// The signature of a trusted publisher was verified.
        Verified = "verified",
        /// The component was compiled.
        Compiled = "compiled",
        /// The version passed all checks: world, grants, manifest,
        /// compatibility, indexes, smoke test.
        Checked = "checked",
        /// The version is stored and requests more capabilities than are
        /// granted.
        AwaitingApproval = "awaiting_approval",
        /// An operator approved the version's capabilities.
        Approved = "approved",
        /// The version is stored and can be activated.
        Staged = "staged",
        /// The version failed a previous step and was refused.
        Refused = "refused",
        /// The version became live.
        Activated = "activated",
        /// The version became live again and replaced its successor.
        RolledBack = "rolled_back",
        /// The version's area was removed and is no longer served.
        Removed = "removed",
        /// The version began to serve some of the workspaces, as a canary.
        CanaryBegun = "canary_begun",
        /// The version began to receive copies of requests, as a shadow.
        ShadowBegun = "shadow_begun",
        /// An operator ended the version's trial.
        TrialStopped = "trial_stopped",
        /// A node ended the version's trial because it was worse than the live
        /// version.
        CanaryRolledBack = "canary_rolled_back",
        /// An operators' token was created.
        TokenCreated = "token_created",
        /// An operators' token was revoked.
        TokenRevoked = "token_revoked",
    }
}

/// A stored version of an area that passed the checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Deployment")]
pub struct StoredVersion {
    /// Sequence number of the version, over all areas.
    pub number: i64,
    /// Name of the version's area.
    pub area: String,
    /// SHA-256 of the version's component, lower-case hex.
    pub digest: String,
    /// Semantic version from the component's manifest.
    pub version: String,
    /// Size of the component in bytes.
    pub size: u64,
    /// Name of the version's component in the blob store.
    #[serde(skip)]
    pub object: String,
    /// Publisher who signed the component; `None` if it is unsigned.
    pub publisher: Option<String>,
    /// The publisher's signature of the component; `None` if it is unsigned.
    #[serde(skip)]
    pub signature: Option<Vec<u8>>,
    /// Current stage of the version.
    pub stage: VersionStage,
    /// Time at which the component was received.
    pub received_at: Timestamp,
    /// Operator who uploaded the component.
    pub received_by: String,
    /// Time at which an operator approved the version's capabilities; `None` if
    /// no approval was needed or given.
    pub approved_at: Option<Timestamp>,
    /// Operator who approved the version's capabilities; `None` if no approval
    /// was needed or given.
    pub approved_by: Option<String>,
    /// Time at which the version last became live; `None` if it never was.
    pub live_at: Option<Timestamp>,
}

/// The version of an area that every node must run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LivePointer {
    /// Name of the area whose live version this is.
    pub area: String,
    /// Digest of the live version; `None` if the area was removed.
    pub digest: Option<String>,
    /// Digest of the version that a rollback activates; `None` if there is
    /// none.
    pub previous: Option<String>,
    /// Revision of the pointer; grows with every change.
    pub revision: i64,
    /// Time of the pointer's last change.
    pub changed_at: Timestamp,
    /// Operator who made the pointer's last change.
    pub changed_by: String,
}

/// An entry of the operators' audit log that has no number yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NewAuditEntry {
    /// Time at which the recorded action was taken.
    pub at: Timestamp,
    /// Operator who took the recorded action, by the name of the token.
    pub who: String,
    /// Area that the entry concerns; `None` if it concerns no area.
    pub area: Option<String>,
    /// Digest of the version that the entry concerns; `None` if it concerns
    /// none.
    pub digest: Option<String>,
    /// Action that the entry records.
    pub step: AuditAction,
    /// Reason for the action, given by the operator or the refusal; `None` if
    /// there is none.
    pub why: Option<String>,
    /// Details of the action, such as the values before and after a change;
    /// `None` if there are none.
    pub changed: Option<Json>,
}

/// A numbered entry of the operators' audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AuditEntry {
    /// Number of the audit log entry; grows with every entry.
    pub id: i64,
    /// Content of the audit log entry.
    #[serde(flatten)]
    pub said: NewAuditEntry,
}

inline_words! {
    /// Whether a node runs the version of an area that it should run.
    pub enum NodeVersionState, "a node's state" {
        /// The node runs the expected version.
        Running = "running",
        /// The node has not loaded the expected version yet.
        Loading = "loading",
        /// The node cannot load the expected version.
        Failed = "failed",
    }
}

/// Report of one host process: the version of one area that it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "NodeReport")]
pub struct NodeAreaReport {
    /// Id of the host process.
    pub node: Uuid,
    /// Name of the machine that the host process runs on.
    pub host: String,
    /// Name of the area that the report is about.
    #[serde(skip)]
    pub area: String,
    /// Digest of the version that the process runs; `None` if it runs none.
    pub digest: Option<String>,
    /// Digest of the version on trial in this process; `None` if there is none.
    pub candidate: Option<String>,
    /// Whether the process runs the version of the area that it should run.
    pub state: NodeVersionState,
    /// Reason why the process cannot run the expected version; `None` if it
    /// can.
    pub why: Option<String>,
    /// Time of the host process's last heartbeat.
    pub seen_at: Timestamp,
}
