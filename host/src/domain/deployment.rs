//! The life of an area's version: what operators keep of it, do with it and
//! are told about it.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use uuid::Uuid;

use super::time::Timestamp;
use super::words::words;

words! {
    /// How far a version has come.
    Stage {
        /// It asks for more than was granted; an operator must approve that.
        AwaitingApproval = "awaiting_approval",
        /// It may answer when an operator says so.
        Staged = "staged",
        /// It answers for some workspaces.
        Canary = "canary",
        /// It answers copies of requests, and nobody hears it.
        Shadow = "shadow",
        /// It answers.
        Live = "live",
        /// It answered until another took its place; a rollback may bring it
        /// back.
        Retired = "retired",
        /// It was rolled back, or taken out with its area; only an operator
        /// who names it brings it back.
        Withdrawn = "withdrawn",
    }
}

words! {
    /// A step in the life of a version, as the audit log names it.
    Step {
        /// Its bytes came.
        Received = "received",
        /// Somebody who is trusted vouches for it.
        Verified = "verified",
        /// It is machine code now.
        Compiled = "compiled",
        /// It fits: the world, its grants, its manifest, its predecessor, its
        /// indexes; and its first calls went well.
        Checked = "checked",
        /// It is kept, and asks for more than was granted.
        AwaitingApproval = "awaiting_approval",
        /// It was granted what it asks for.
        Approved = "approved",
        /// It is kept, ready to answer.
        Staged = "staged",
        /// It was refused, at one of the steps above.
        Refused = "refused",
        /// It answers.
        Activated = "activated",
        /// It answers again, in place of its successor.
        RolledBack = "rolled_back",
        /// Its area answers no more.
        Removed = "removed",
        /// It answers for some workspaces.
        CanaryBegun = "canary_begun",
        /// It answers copies of requests.
        ShadowBegun = "shadow_begun",
        /// An operator ended its trial.
        TrialStopped = "trial_stopped",
        /// A node ended its trial, since it was worse than the live version.
        CanaryRolledBack = "canary_rolled_back",
        /// A token was made for an operator.
        TokenCreated = "token_created",
        /// A token opens nothing any more.
        TokenRevoked = "token_revoked",
    }
}

/// A version that passed the checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Deployment {
    /// Grows with every version received, over all areas.
    pub number: i64,
    /// Whose version it is.
    pub area: String,
    /// SHA-256 of the component, lower-case hex.
    pub digest: String,
    /// As the manifest says.
    pub version: String,
    /// Bytes of the component.
    pub size: u64,
    /// Where the blob store has the component.
    #[serde(skip)]
    pub object: String,
    /// Who signed it.
    pub publisher: Option<String>,
    /// What they signed it with.
    #[serde(skip)]
    pub signature: Option<Vec<u8>>,
    /// How far it has come.
    pub stage: Stage,
    /// When it came.
    pub received_at: Timestamp,
    /// Who sent it.
    pub received_by: String,
    /// When its wishes were approved, where they had to be.
    pub approved_at: Option<Timestamp>,
    /// Who approved them.
    pub approved_by: Option<String>,
    /// When it last began to answer.
    pub live_at: Option<Timestamp>,
}

/// Which version of an area every node is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pointer {
    /// The area.
    pub area: String,
    /// The version that answers; none: the area was taken out.
    pub digest: Option<String>,
    /// Where a rollback goes.
    pub previous: Option<String>,
    /// Grows with every change.
    pub revision: i64,
    /// When it was changed.
    pub changed_at: Timestamp,
    /// Who changed it.
    pub changed_by: String,
}

/// A line of the audit log, before it has a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Audited {
    /// When.
    pub at: Timestamp,
    /// The operator, by the token's name.
    pub who: String,
    /// What it is about, where it is about an area.
    pub area: Option<String>,
    /// And a version.
    pub digest: Option<String>,
    /// What was done.
    pub step: Step,
    /// As the operator, or the refusal, says.
    pub why: Option<String>,
    /// What is different now.
    pub changed: Option<Json>,
}

/// A line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AuditLine {
    /// Grows with every line.
    pub id: i64,
    /// What it says.
    #[serde(flatten)]
    pub said: Audited,
}

words! {
    /// Whether a node runs what it should.
    NodeState {
        /// It does.
        Running = "running",
        /// It has yet to load the version that it should run.
        Loading = "loading",
        /// It should run another version and cannot.
        Failed = "failed",
    }
}

/// What one process runs of one area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodeReport {
    /// The process.
    pub node: Uuid,
    /// The machine it runs on.
    pub host: String,
    /// The area.
    #[serde(skip)]
    pub area: String,
    /// What answers there; none: nothing does.
    pub digest: Option<String>,
    /// What is on trial there.
    pub candidate: Option<String>,
    /// Whether that is what should.
    pub state: NodeState,
    /// Why it does not.
    pub why: Option<String>,
    /// The last sign of life.
    pub seen_at: Timestamp,
}
