//! Changes of a program's state by users.

use area_sdk::prelude::*;
use area_sdk::text::name;

use crate::events::ProgramTransitioned;
use crate::program::{ProgramHandlerResult, StoredProgram, shown};
use crate::state::ProgramState;

/// Text for the OpenAPI document: which changes of state are allowed.
pub(crate) const DESCRIPTION: &str = "From `draft` to `in_review`; from there to `approved` or \
    `rejected`, by a user other than the author; from `approved` to `active`. Every open program \
    can be `cancelled`. Only the audit that verifies the last step of an active program sets \
    `completed`. `notes` become the program's `review_notes`, `step_notes` those of its steps.";

/// A request to change the state of a program.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ProgramTransitionRequest {
    to_state: ProgramState,
    /// Reason of the change of state, stored as the program's `review_notes`.
    #[schemars(length(min = 1, max = 4000))]
    notes: Option<String>,
    /// Notes on single steps of the program.
    #[serde(default)]
    #[schemars(length(max = 20))]
    step_notes: Vec<StepNote>,
}

/// A note on one step of a program.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "StepNotes")]
struct StepNote {
    /// Number of the step in its program, from 1.
    #[schemars(range(min = 1, max = 20))]
    order: usize,
    #[schemars(length(min = 1, max = 4000))]
    notes: String,
}

pub(crate) fn transition(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(asked): Body<ProgramTransitionRequest>,
) -> ProgramHandlerResult {
    let mut program = ctx.documents::<StoredProgram>().get(id)?;
    ctx.check_if_match(program.version)?;
    let (from, to) = (program.state, asked.to_state);
    if !from.may_become(to) {
        return Err(not_allowed(from, to));
    }
    if to.is_verdict() {
        check_reviewer(ctx, &program)?;
        program.reviewed_by = Some(ctx.user());
    }
    note_steps(&mut program, asked.step_notes)?;
    if asked.notes.is_some() {
        program.review_notes.clone_from(&asked.notes);
    }
    program.set_state(to, ctx.now());
    ctx.documents().replace(&mut program)?;
    ctx.publish(ProgramTransitioned {
        program_id: id,
        finding_id: program.finding_id,
        from_state: from,
        to_state: to,
        actor_id: Some(ctx.user()),
        notes: asked.notes,
    });
    shown(ctx, program)
}

fn not_allowed(from: ProgramState, to: ProgramState) -> Problem {
    let next: Vec<String> = ProgramState::ALL
        .into_iter()
        .filter(|next| from.may_become(*next))
        .map(|next| name(&next))
        .collect();
    let detail = format!("A program that is {} cannot become {}.", name(&from), name(&to));
    let hint = match (next.as_slice(), to) {
        (_, ProgramState::Completed) => {
            "The audit that verifies the last step completes it.".into()
        }
        ([], _) => "That state is final; create another program.".into(),
        (next, _) => format!("It can become {}.", next.join(", ")),
    };
    Problem::conflict("invalid_transition", detail).hint(hint)
}

fn check_reviewer(ctx: &Ctx, program: &StoredProgram) -> Result<()> {
    if program.created_by != ctx.user() {
        return Ok(());
    }
    let problem = Problem::permission_denied("The author of a program cannot review it.");
    Err(problem.code("reviewer_is_author").hint("Ask another member of the workspace."))
}

fn note_steps(program: &mut StoredProgram, notes: Vec<StepNote>) -> Result<()> {
    let count = program.steps.len();
    for (index, StepNote { order, notes }) in notes.into_iter().enumerate() {
        let Some(step) = order.checked_sub(1).and_then(|at| program.steps.get_mut(at)) else {
            let pointer = format!("/step_notes/{index}/order");
            let message = format!("The program has the steps 1 to {count}.");
            return Err(Problem::validation(pointer, message));
        };
        step.review_notes = Some(notes);
    }
    Ok(())
}
