//! Creates a remediation program, after all checks of the request.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{Scope, Violation};
use area_shared::catalog::Repository;

use crate::events::ProgramCreated;
use crate::predicate;
use crate::program::{RemediationProgram, StepPlan, StoredProgram, StoredStep, shown};
use crate::state::{EvaluationStatus, ProgramState, StepState};

/// Text for the OpenAPI document: rules of programs and steps.
pub(crate) const DESCRIPTION: &str = "A program is for a finding of the workspace. A finding has \
    at most one open program (409 `program_open`). It is a `draft` at first; its steps are \
    numbered from 1, the first is `ready`, the others are `blocked`.\n\n\
    A step is verified by an audit of each of its `repository_ids` (by default the finding's \
    repository) that completes while the program is active and for which `verification_predicate` \
    is true. That is an expression in the Common Expression Language, true or false, over the \
    audit's facts: `audit` {id, repository_id, branch_ref, commit_sha}, `findings` {total, open, \
    new, reopened, gone, by_severity, by_rule}, `dependencies` {total, direct, vulnerable, \
    advisories} and `ownership` {rules, paths, unowned}. `by_severity` has {critical, high, \
    medium, low, none}, always all of them; `by_rule` has the rules with open findings only.\n\n\
    `advisories` has the id of each advisory that affects a component, its aliases (such as CVE \
    ids), and the ids in its `upstream` and `related`. Ids are written as in the advisory, other \
    names in upper case, but for GitHub's (`GHSA-jfh8-c2jp-5v3q`).\n\n\
    Facts for which nothing was read are absent: `findings` of a repository without a scan, or if \
    a scan failed or was refused; `dependencies` unless the audit imported an SBOM and refused \
    none; its `vulnerable` and `advisories` while no advisory is imported; `unowned` without paths \
    or if there are too many findings. A predicate with an absent fact is an `error` and verifies \
    nothing.\n\n\
    `matches` supports regular expressions without look-around, back references and Unicode \
    classes. Times, durations and nested macros are not supported. The predicate is checked when \
    the program is created.";

/// A request to create a remediation program.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewRemediationProgram {
    finding_id: Uuid,
    /// Reason why these steps remove the cause of the finding.
    #[schemars(length(min = 1, max = 10_000))]
    rationale: String,
    #[schemars(length(min = 1, max = 20))]
    steps: Vec<StepPlan>,
    #[schemars(length(min = 1, max = 200))]
    title: String,
}

/// A finding of the area `control_room`, with the members that this area reads.
#[derive(Serialize, Deserialize)]
struct ControlRoomFinding {
    repository_id: Uuid,
    match_group_id: Option<Uuid>,
}

document!(ControlRoomFinding, "control_room.findings");

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewRemediationProgram>,
) -> Result<Created<Versioned<RemediationProgram>>> {
    check_predicates(&new.steps)?;
    check_repositories(ctx, &new.steps)?;
    let finding = finding(ctx, new.finding_id)?;
    check_none_open(ctx, new.finding_id)?;
    let id = ctx.new_id();
    ctx.publish(ProgramCreated {
        program_id: id,
        finding_id: new.finding_id,
        title: new.title.clone(),
        created_by: ctx.user(),
    });
    ctx.documents().create(id, &program(ctx, new, &finding))?;
    shown(ctx, ctx.documents().get(id)?).map(Created)
}

fn program(ctx: &Ctx, new: NewRemediationProgram, finding: &ControlRoomFinding) -> StoredProgram {
    StoredProgram {
        title: new.title,
        rationale: new.rationale,
        finding_id: new.finding_id,
        repository_id: finding.repository_id,
        root_cause_id: finding.match_group_id,
        target_state_ref: target_state_ref(ctx, &new.steps),
        created_by: ctx.user(),
        state: ProgramState::Draft,
        open_finding_id: Some(new.finding_id),
        steps: new.steps.into_iter().enumerate().map(step).collect(),
        reviewed_by: None,
        review_notes: None,
        activated_at: None,
        completed_at: None,
    }
}

fn step((index, plan): (usize, StepPlan)) -> StoredStep {
    StoredStep {
        plan,
        state: if index == 0 { StepState::Ready } else { StepState::Blocked },
        evaluation_status: EvaluationStatus::Pending,
        evidence_ids: Vec::new(),
        review_notes: None,
        verification_audit_id: None,
        verified_at: None,
        satisfied_by: BTreeMap::new(),
    }
}

/// Returns the `target_state_ref` of these steps: a digest of their invariants and predicates.
fn target_state_ref(scope: &Scope, steps: &[StepPlan]) -> String {
    let target: Vec<[&str; 3]> = steps
        .iter()
        .map(|step| {
            [
                step.invariant_id.as_str(),
                step.invariant_version.as_str(),
                step.verification_predicate.as_str(),
            ]
        })
        .collect();
    let target = serde_json::json!(target).to_string();
    format!("sha256:{}", scope.sha256_hex(target.as_bytes()))
}

/// Returns a 422 with all violations and the hint, if there are violations.
fn refuse(violations: Vec<Violation>, hint: &str) -> Result<()> {
    let Some(first) = violations.first() else { return Ok(()) };
    let problem = Problem::validation(first.pointer.clone(), first.message.clone()).hint(hint);
    Err(Problem { violations, ..problem })
}

fn check_predicates(steps: &[StepPlan]) -> Result<()> {
    let wrong = steps.iter().enumerate().filter_map(|(index, step)| {
        let message = predicate::check(&step.verification_predicate).err()?;
        Some(Violation { pointer: format!("/steps/{index}/verification_predicate"), message })
    });
    refuse(wrong.collect(), predicate::HINT)
}

fn check_repositories(ctx: &Ctx, steps: &[StepPlan]) -> Result<()> {
    let named: BTreeSet<Uuid> =
        steps.iter().flat_map(|step| &step.repository_ids).copied().collect();
    let known = ctx.documents::<Repository>().get_many(&named)?;
    let known: BTreeSet<Uuid> = known.iter().map(Stored::uuid).collect();
    let mut violations = Vec::new();
    for (step, plan) in steps.iter().enumerate() {
        let mut seen = BTreeSet::new();
        for (index, id) in plan.repository_ids.iter().enumerate() {
            let message = match (known.contains(id), seen.insert(id)) {
                (true, true) => continue,
                (true, false) => "This repository is listed twice.",
                (false, _) => "This workspace has no such repository.",
            };
            let pointer = format!("/steps/{step}/repository_ids/{index}");
            violations.push(Violation { pointer, message: message.to_owned() });
        }
    }
    refuse(violations, "Use ids from the workspace's list of repositories, each once for a step.")
}

fn finding(ctx: &Ctx, id: Uuid) -> Result<ControlRoomFinding> {
    let Some(finding) = ctx.documents::<ControlRoomFinding>().find(id)? else {
        let detail = format!("This workspace has no finding {id}.");
        let hint = "Use a `finding_id` from the workspace's list of findings.";
        return Err(Problem { detail, ..Problem::not_found() }.hint(hint));
    };
    Ok(finding.value)
}

fn check_none_open(ctx: &Ctx, finding_id: Uuid) -> Result<()> {
    let open = ctx.documents::<StoredProgram>().query().equals("open_finding_id", finding_id);
    let Some(open) = open.first()? else { return Ok(()) };
    let detail = format!("The finding has an open program, {}.", open.id);
    let hint = "Continue that program, or cancel it first.";
    Err(Problem::conflict("program_open", detail).hint(hint))
}
