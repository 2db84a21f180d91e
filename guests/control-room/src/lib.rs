//! Findings and the control room (operation 15). Audits import findings from SARIF files and
//! evidence records (`import`). Users decide about them (`lifecycle`, `suggestions`). The control
//! room summarizes their states (`room`).

mod architecture;
mod decimal;
mod finding;
mod findings;
#[cfg(not(target_arch = "wasm32"))]
pub mod fuzzing;
mod identity;
mod import;
mod lifecycle;
mod matching;
mod observation;
mod owners;
mod room;
mod sarif;
mod severity;
mod similarity;
mod state;
mod suggestions;
mod text;
mod transition;

use area_sdk::RateClass;
use area_sdk::prelude::*;
use area_shared::queue::JobCancelled;

use finding::Finding;
use import::events::{FindingsCreated, FindingsImported, FindingsReopened, FindingsVerified};
use import::{AnalysisSeries, AuditImportMarker, BranchScanLimitations, FindingImportJob};
use lifecycle::{AcceptanceExpiryJob, FindingTransitioned};
use owners::AssignOwnersJob;
use room::{ControlRoom, ControlRoomRebuilt, StoredSnapshot};
use similarity::StoredTextFingerprint;
use suggestions::{MatchSuggestion, SuggestionDecided};
use transition::StoredTransition;

/// Declares the area.
pub fn area() -> Area {
    let area = Area::new("control_room", env!("CARGO_PKG_VERSION"))
        .summary("Findings, their lifecycle and matches, and the control room")
        .uses(&[Capability::Blobs, Capability::Settings])
        .on("audit.started", import::audit_started)
        .on("ownership.applied", owners::applied)
        .on(JobCancelled::NAME, lifecycle::job_cancelled)
        .job::<FindingImportJob>(Lane::Ingest, 10, 60_000, import::run)
        .job::<AssignOwnersJob>(Lane::Ingest, 5, 30_000, owners::assign)
        .job::<AcceptanceExpiryJob>(
            Lane::Maintenance,
            lifecycle::EXPIRY_ATTEMPTS,
            10_000,
            lifecycle::expire,
        );
    operations(events(collections(findings(area))))
}

fn findings(area: Area) -> Area {
    area.collection(
        Collection::of::<Finding>()
            .summary("Findings; `version` is the lifecycle's")
            .fields(&["tool", "title", "purl"])
            .unique(&["identity_fingerprint"])
            .index(&["repository_id", "open", "rule_id"])
            .index(&["repository_id", "open", "risk_rank"])
            .index(&["state", "risk_severity", "architecture_impact", "recurring"])
            .index(&["recurring", "open", "risk_rank"])
            .index(&["open", "last_seen_at"])
            .index(&["open", "sla_due_at"])
            .index(&["analysis_id", "present", "analysis_run"])
            .index(&["audit_id"])
            .index(&["match_group_id"])
            .index(&["duplicate_of"])
            .index(&["owner_id"])
            .index(&["rule_id"])
            .index(&["repository_id", "rule_family"])
            .index(&["repository_id", "signature"])
            .readable_by(&["*"]),
    )
}

fn collections(area: Area) -> Area {
    area.collections([
        Collection::of::<StoredTransition>()
            .summary("Transitions of findings; written once, never changed")
            .fields(&["by_person"])
            .unique(&["finding_id", "version"])
            .index(&["to_state", "created_at", "elapsed_hours", "elapsed_seconds"])
            .index(&["decision", "created_at", "elapsed_hours", "elapsed_seconds"])
            .readable_by(&["*"]),
        Collection::of::<MatchSuggestion>()
            .summary("Pairs of findings that may be the same")
            .index(&["state"])
            .readable_by(&["*"]),
        Collection::of::<StoredSnapshot>()
            .summary("Snapshots of the control room, one for each change of content")
            .index(&["window"])
            .readable_by(&["*"]),
        Collection::of::<StoredTextFingerprint>().summary(
            "Word sketches of findings for the similarity search; the id is the finding's",
        ),
        Collection::of::<ControlRoom>().summary("The latest rebuild of the control room"),
        Collection::of::<AnalysisSeries>()
            .summary("One tool, category or artifact stream, and branch of a repository")
            .index(&["repository_id", "branch_ref", "last_run_at"]),
        Collection::of::<BranchScanLimitations>()
            .summary("Limitations of the latest audit of a branch")
            .index(&["limited", "repository_id"]),
        Collection::of::<AuditImportMarker>().summary("One for each audit"),
    ])
}

fn events(area: Area) -> Area {
    area.event::<FindingsImported>("An audit's findings are imported")
        .event::<FindingsCreated>("An audit reported new findings")
        .event::<FindingsReopened>("An audit reported settled findings again")
        .event::<FindingsVerified>("An audit verified that open findings are gone")
        .event::<FindingTransitioned>("A user changed a finding's state, or an accepted risk ended")
        .event::<SuggestionDecided>("A user decided whether two findings are the same")
        .event::<ControlRoomRebuilt>("The control room was rebuilt")
}

const FINDING: &str = "/v1/workspaces/{workspace_id}/findings/{finding_id}";
const TRANSITIONS: &str = "/v1/workspaces/{workspace_id}/findings/{finding_id}/transitions";
const SUGGESTION: &str = "/v1/workspaces/{workspace_id}/match-suggestions/{suggestion_id}";

fn operations(area: Area) -> Area {
    suggestion_operations(finding_operations(area)).routes([
        post("rebuild_control_room", "/v1/workspaces/{workspace_id}/control-room/rebuild")
            .summary("Rebuild the control room")
            .description(room::DESCRIPTION)
            .in_contract()
            .role(Role::Member)
            .rate(RateClass::Heavy)
            .deadline_ms(30_000)
            .example(include_str!("../examples/rebuild_control_room.json"))
            .handler(room::rebuild),
        get("get_control_room", "/v1/workspaces/{workspace_id}/control-room")
            .summary("Read the latest rebuild of the control room")
            .description("Without a rebuild, the control room is computed and not stored.")
            .rate(RateClass::Standard)
            .deadline_ms(30_000)
            .example(include_str!("../examples/get_control_room.json"))
            .handler(room::show),
    ])
}

fn finding_operations(area: Area) -> Area {
    area.routes([
        get("list_findings", "/v1/workspaces/{workspace_id}/findings")
            .summary("List findings, newest first")
            .description(findings::DESCRIPTION)
            .rate(RateClass::Standard)
            .deadline_ms(10_000)
            .example(include_str!("../examples/list_findings.json"))
            .handler(findings::list),
        get("get_finding", FINDING)
            .summary("Read a finding")
            .description("`ETag` is its lifecycle version.")
            .example(include_str!("../examples/get_finding.json"))
            .handler(findings::show),
        post("transition_finding", TRANSITIONS)
            .summary("Change a finding's state")
            .description(lifecycle::DESCRIPTION)
            .problems(&["transition_not_allowed"])
            .example(include_str!("../examples/transition_finding.json"))
            .if_match()
            .handler(lifecycle::create),
        get("list_finding_transitions", TRANSITIONS)
            .summary("List a finding's transitions, newest first")
            .description(
                "One page of decisions about the finding, each with its reason, its evidence and \
                 who made it.",
            )
            .example(include_str!("../examples/list_finding_transitions.json"))
            .handler(lifecycle::list),
    ])
}

fn suggestion_operations(area: Area) -> Area {
    area.routes([
        get("list_match_suggestions", "/v1/workspaces/{workspace_id}/match-suggestions")
            .summary("List suggestions that two findings are the same, newest first")
            .description(matching::DESCRIPTION)
            .example(include_str!("../examples/list_match_suggestions.json"))
            .handler(suggestions::list),
        get("get_match_suggestion", SUGGESTION)
            .summary("Read a match suggestion")
            .description(
                "Two findings that may be the same. The `ETag` of the response is the version \
                 that a change names in `If-Match`.",
            )
            .example(include_str!("../examples/get_match_suggestion.json"))
            .handler(suggestions::show),
        post(
            "decide_match_suggestion",
            "/v1/workspaces/{workspace_id}/match-suggestions/{suggestion_id}/decision",
        )
        .summary("Decide whether two findings are the same")
        .description(
            "`accepted` joins both in one match group. If both are open, the newer (right) \
            finding becomes a duplicate of the older one, which then lists the other's tools. A \
            decision cannot be changed.",
        )
        .problems(&["suggestion_decided"])
        .example(include_str!("../examples/decide_match_suggestion.json"))
        .if_match()
        .handler(suggestions::decide),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
