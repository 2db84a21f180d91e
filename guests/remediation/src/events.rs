//! What the rest of the service is told of programs.

use area_sdk::prelude::*;

use crate::state::ProgramState;

/// Told when a program is made.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProgramCreated {
    pub(crate) program_id: Uuid,
    pub(crate) finding_id: Uuid,
    pub(crate) title: String,
    pub(crate) created_by: Uuid,
}

impl Event for ProgramCreated {
    const NAME: &'static str = "remediation.program_created";
}

/// Told when a program comes into another state.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProgramTransitioned {
    pub(crate) program_id: Uuid,
    pub(crate) finding_id: Uuid,
    pub(crate) from_state: ProgramState,
    pub(crate) to_state: ProgramState,
    /// Null where an audit did it.
    pub(crate) actor_id: Option<Uuid>,
    pub(crate) notes: Option<String>,
}

impl Event for ProgramTransitioned {
    const NAME: &'static str = "remediation.program_transitioned";
}

/// Told when an audit verifies a step.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StepVerified {
    pub(crate) program_id: Uuid,
    pub(crate) finding_id: Uuid,
    /// From 1.
    pub(crate) order: usize,
    pub(crate) audit_id: Uuid,
}

impl Event for StepVerified {
    const NAME: &'static str = "remediation.step_verified";
}

/// Told when an audit verifies the last step.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProgramCompleted {
    pub(crate) program_id: Uuid,
    pub(crate) finding_id: Uuid,
    pub(crate) audit_id: Uuid,
}

impl Event for ProgramCompleted {
    const NAME: &'static str = "remediation.program_completed";
}
