//! The life cycle of an area's version: stored versions, live pointers, the
//! audit log, node reports.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use uuid::Uuid;

use super::time::Timestamp;
use super::words::words;

words! {
    /// Stage of a version in its life cycle.
    Stage {
        /// It requests more capabilities than are granted and waits for an
        /// operator's approval.
        AwaitingApproval = "awaiting_approval",
        /// It can be activated.
        Staged = "staged",
        /// It serves some of the workspaces.
        Canary = "canary",
        /// It receives copies of requests; its responses are discarded.
        Shadow = "shadow",
        /// It serves the area.
        Live = "live",
        /// It was live until another version replaced it; a rollback can
        /// activate it again.
        Retired = "retired",
        /// It was rolled back, or removed with its area. Only an operator who
        /// names it can activate it again.
        Withdrawn = "withdrawn",
    }
}

words! {
    /// A step in the life cycle of a version, as recorded in the audit log.
    Step {
        /// The component was received.
        Received = "received",
        /// The signature of a trusted publisher was verified.
        Verified = "verified",
        /// The component was compiled.
        Compiled = "compiled",
        /// It passed all checks: world, grants, manifest, compatibility,
        /// indexes, smoke test.
        Checked = "checked",
        /// It is stored and requests more capabilities than are granted.
        AwaitingApproval = "awaiting_approval",
        /// An operator approved its capabilities.
        Approved = "approved",
        /// It is stored and can be activated.
        Staged = "staged",
        /// It was refused by one of the previous steps.
        Refused = "refused",
        /// It became the live version.
        Activated = "activated",
        /// It became the live version again and replaced its successor.
        RolledBack = "rolled_back",
        /// Its area was removed and is no longer served.
        Removed = "removed",
        /// It began to serve some of the workspaces.
        CanaryBegun = "canary_begun",
        /// It began to receive copies of requests.
        ShadowBegun = "shadow_begun",
        /// An operator ended its trial.
        TrialStopped = "trial_stopped",
        /// A node ended its trial because it was worse than the live version.
        CanaryRolledBack = "canary_rolled_back",
        /// An operators' token was created.
        TokenCreated = "token_created",
        /// An operators' token was revoked.
        TokenRevoked = "token_revoked",
    }
}

/// A stored version that passed the checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Deployment {
    /// Sequence number of the version, over all areas.
    pub number: i64,
    /// The area of the version.
    pub area: String,
    /// SHA-256 of the component, lower-case hex.
    pub digest: String,
    /// Version from the manifest.
    pub version: String,
    /// Size of the component in bytes.
    pub size: u64,
    /// Name of the component in the blob store.
    #[serde(skip)]
    pub object: String,
    /// Publisher who signed it; `None` if it is unsigned.
    pub publisher: Option<String>,
    /// Signature of the publisher.
    #[serde(skip)]
    pub signature: Option<Vec<u8>>,
    /// Current stage.
    pub stage: Stage,
    /// When it was received.
    pub received_at: Timestamp,
    /// Operator who sent it.
    pub received_by: String,
    /// When an operator approved its capabilities; `None` if no approval was
    /// needed or given.
    pub approved_at: Option<Timestamp>,
    /// Operator who approved its capabilities.
    pub approved_by: Option<String>,
    /// When it last became live.
    pub live_at: Option<Timestamp>,
}

/// The version of an area that every node must run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LivePointer {
    /// The area.
    pub area: String,
    /// Digest of the live version; `None` if the area was removed.
    pub digest: Option<String>,
    /// Digest of the version that a rollback activates.
    pub previous: Option<String>,
    /// Revision of this row; grows with every change.
    pub revision: i64,
    /// When it was changed.
    pub changed_at: Timestamp,
    /// Operator who changed it.
    pub changed_by: String,
}

/// An entry of the audit log that has no number yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NewAuditEntry {
    /// Time of the step.
    pub at: Timestamp,
    /// Operator, by the name of the token.
    pub who: String,
    /// The area concerned; `None` if it concerns no area.
    pub area: Option<String>,
    /// Digest of the version concerned; `None` if it concerns none.
    pub digest: Option<String>,
    /// The step that was taken.
    pub step: Step,
    /// Reason, given by the operator or the refusal.
    pub why: Option<String>,
    /// The values before and after, if the step changed any.
    pub changed: Option<Json>,
}

/// A numbered entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AuditEntry {
    /// Number of the entry; grows with every entry.
    pub id: i64,
    /// Content of the entry.
    #[serde(flatten)]
    pub said: NewAuditEntry,
}

words! {
    /// Whether a node runs the version of an area that it should run.
    NodeState {
        /// It runs that version.
        Running = "running",
        /// It has not loaded that version yet.
        Loading = "loading",
        /// It cannot load that version.
        Failed = "failed",
    }
}

/// Version of one area that one process runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodeReport {
    /// Id of the process.
    pub node: Uuid,
    /// Name of its machine.
    pub host: String,
    /// The area.
    #[serde(skip)]
    pub area: String,
    /// Digest of the running version; `None` if none runs.
    pub digest: Option<String>,
    /// Digest of the version on trial there.
    pub candidate: Option<String>,
    /// Whether it is the expected version.
    pub state: NodeState,
    /// Why the expected version does not run.
    pub why: Option<String>,
    /// Time of the last heartbeat.
    pub seen_at: Timestamp,
}
