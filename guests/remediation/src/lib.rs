//! Structural remediation programs (operation 7): the steps that remove the cause of a finding. A
//! program is reviewed by a user other than its author. Each step has a predicate over an audit's
//! facts, and only an audit can verify it.

mod create;
mod evaluate;
mod evaluations;
mod events;
#[cfg(not(target_arch = "wasm32"))]
pub mod fuzzing;
mod predicate;
mod program;
mod state;
mod transitions;

use area_sdk::prelude::*;

use evaluate::{EnqueueEvaluationsJob, EvaluateProgramJob};
use evaluations::StoredEvaluation;
use events::{ProgramCompleted, ProgramCreated, ProgramTransitioned, StepVerified};
use program::StoredProgram;

const PROGRAMS: &str = "/v1/workspaces/{workspace_id}/structural/remediation-programs";
const PROGRAM: &str = "/v1/workspaces/{workspace_id}/structural/remediation-programs/{program_id}";
const TRANSITIONS: &str =
    "/v1/workspaces/{workspace_id}/structural/remediation-programs/{program_id}/transitions";
const EVALUATIONS: &str =
    "/v1/workspaces/{workspace_id}/structural/remediation-programs/{program_id}/evaluations";

/// Declares the area `remediation`: its operations, collections, events and jobs.
pub fn area() -> Area {
    let area = Area::new("remediation", env!("CARGO_PKG_VERSION"))
        .summary("Structural remediation programs, verified by audits")
        .uses(&[Capability::Crypto])
        .event::<ProgramCreated>("A remediation program was created")
        .event::<ProgramTransitioned>("A remediation program's state changed")
        .event::<StepVerified>("An audit verified a step of a remediation program")
        .event::<ProgramCompleted>("An audit verified the last step of a remediation program")
        .on("audit.completed", evaluate::audit_completed)
        .job::<EnqueueEvaluationsJob>(Lane::Ingest, 10, 10_000, evaluate::programs)
        .job::<EvaluateProgramJob>(Lane::Ingest, 10, 10_000, evaluate::program);
    operations(collections(area))
}

fn collections(area: Area) -> Area {
    area.collections([
        Collection::of::<StoredProgram>()
            .summary("Programs, with their steps")
            .unique(&["open_finding_id"])
            .index(&["finding_id"])
            .index(&["repository_id"])
            .index(&["state"])
            .readable_by(&["*"]),
        Collection::of::<StoredEvaluation>().summary("Evaluations of steps' predicates").unique(&[
            "program_id",
            "audit_id",
            "order",
        ]),
    ])
}

fn operations(area: Area) -> Area {
    area.routes([
        post("create_remediation_program", PROGRAMS)
            .summary("Create a remediation program for a finding")
            .description(create::DESCRIPTION)
            .in_contract()
            .problems(&["program_open"])
            .example(include_str!("../examples/create_remediation_program.json"))
            .handler(create::create),
        get("list_remediation_programs", PROGRAMS)
            .summary("List remediation programs, newest first")
            .description("One page. Finding, repository and state select programs.")
            .example(include_str!("../examples/list_remediation_programs.json"))
            .handler(program::list),
        get("get_remediation_program", PROGRAM)
            .summary("Read a remediation program")
            .description(
                "With its steps and their verification. The `ETag` of the response is the version \
                that a change names in `If-Match`.",
            )
            .example(include_str!("../examples/get_remediation_program.json"))
            .handler(program::show),
        post("transition_remediation_program", TRANSITIONS)
            .summary("Change a remediation program's state")
            .description(transitions::DESCRIPTION)
            .problems(&["invalid_transition", "reviewer_is_author"])
            .example(include_str!("../examples/transition_remediation_program.json"))
            .if_match()
            .handler(transitions::transition),
        get("list_remediation_evaluations", EVALUATIONS)
            .summary("List evaluations of a program's predicates, newest first")
            .description("One page of results, one for each predicate and audit.")
            .example(include_str!("../examples/list_remediation_evaluations.json"))
            .handler(evaluations::list),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
