//! Events about remediation programs.

use area_sdk::prelude::*;

use crate::state::ProgramState;

/// Published when a remediation program was created.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProgramCreated {
    pub(crate) program_id: Uuid,
    pub(crate) finding_id: Uuid,
    pub(crate) title: String,
    pub(crate) created_by: Uuid,
}

event!(ProgramCreated, "remediation.program_created");

/// Published when the state of a remediation program changed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProgramTransitioned {
    pub(crate) program_id: Uuid,
    pub(crate) finding_id: Uuid,
    pub(crate) from_state: ProgramState,
    pub(crate) to_state: ProgramState,
    /// User who changed the state; null if an audit did.
    pub(crate) actor_id: Option<Uuid>,
    pub(crate) notes: Option<String>,
}

event!(ProgramTransitioned, "remediation.program_transitioned");

/// Published when an audit verified a step of a program.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StepVerified {
    pub(crate) program_id: Uuid,
    pub(crate) finding_id: Uuid,
    /// Number of the step in its program, from 1.
    pub(crate) order: usize,
    pub(crate) audit_id: Uuid,
}

event!(StepVerified, "remediation.step_verified");

/// Published when an audit verified the last step of a program.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProgramCompleted {
    pub(crate) program_id: Uuid,
    pub(crate) finding_id: Uuid,
    pub(crate) audit_id: Uuid,
}

event!(ProgramCompleted, "remediation.program_completed");
