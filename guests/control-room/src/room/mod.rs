//! The control room (operation 15): a summary of the workspace's findings, computed from stored
//! data.
//!
//! The database counts the findings; only findings in the response are read. So a hundred thousand
//! findings need no more memory than ten.

mod activity;
mod durations;
mod outcomes;
mod snapshots;

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{DocumentError, Scope};

use crate::finding::Finding;
use crate::findings::FindingSummary;
use crate::suggestions::{MatchSuggestion, MatchSuggestionResponse, SuggestionState};
use crate::transition::{StoredTransition, TransitionRecord};
use outcomes::OutcomesWithBaseline;
use snapshots::ControlRoomSnapshot;
pub(crate) use snapshots::StoredSnapshot;

/// Version of the rules that compute the control room, as responses name it.
const CALCULATION: &str = "control-room-v1";

/// Maximum number of recent transitions, and of recurring findings, in a control room.
const MOST_ENTRIES: u32 = 100;
/// Maximum number of pending match suggestions in a control room.
const MOST_PENDING: usize = 100;
/// Maximum number of decided match suggestions in a control room.
const MOST_DECIDED: usize = 20;

/// Text for the OpenAPI document: how the control room is computed.
pub(crate) const DESCRIPTION: &str = "`match_suggestions` has the 100 newest that are pending, \
    then the 20 newest of those accepted and rejected; `recent_transitions` the 100 newest; \
    `recurring_findings` the 100 riskiest of those reported by at least two audits, open ones \
    first; `snapshots` one each for 24h, 7d and 30d.\n\n\
    Outcomes are of the last 30 days; the baseline is the 30 days before. A decision is a user's \
    first transition of a new or reopened finding; review time is the time until then. It is \
    `measuring` until both windows have 20 decisions, and `review_time_saved_hours` is the \
    baseline's mean less the current one, times the current decisions. `remediation_speed_hours` \
    and `mttr_hours` are the mean time from a lifecycle's beginning to its verification, null \
    without data.\n\n\
    A snapshot counts findings by state (`counts`, with `total`, `open`, `overdue`, and what was \
    `window_created`, `window_verified`, `window_reopened` and `window_decided`) and open ones by \
    severity and by impact. `freshness_percent` is the share of open findings that an audit \
    reported within the window. `score` is 100 / (1 + w / 100), w the open findings weighed 10 \
    (critical), 5 (high), 2 (medium) and 0.5 (low). A snapshot with unchanged content keeps its \
    `as_of`.\n\n\
    The same data gives the same content.";

/// The control room: a summary of the workspace's findings and of users' decisions about them.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ControlRoom {
    calculation_version: String,
    generated_at: Timestamp,
    match_suggestions: Vec<MatchSuggestionResponse>,
    outcomes: OutcomesWithBaseline,
    recent_transitions: Vec<TransitionRecord>,
    recurring_findings: Vec<FindingSummary>,
    snapshots: Vec<ControlRoomSnapshot>,
}

document!(ControlRoom, "rooms");

/// Id of the only stored [`ControlRoom`], the result of the latest rebuild.
const LATEST: &str = "latest";

/// Published when a user rebuilt the control room.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ControlRoomRebuilt {
    generated_at: Timestamp,
    calculation_version: &'static str,
    snapshot_ids: Vec<Uuid>,
}

event!(ControlRoomRebuilt, "control_room.rebuilt");

pub(crate) fn rebuild(ctx: &Ctx) -> Result<ControlRoom> {
    let room = compute(ctx)?;
    // The others are stored already, because an earlier rebuild computed them.
    for snapshot in room.snapshots.iter().filter(|snapshot| snapshot.as_of == ctx.now()) {
        let stored = StoredSnapshot { snapshot: snapshot.clone() };
        ctx.documents().create(snapshot.id, &stored)?;
    }
    match ctx.documents::<ControlRoom>().find(LATEST)? {
        Some(mut kept) => {
            kept.value = room.clone();
            ctx.documents().replace(&mut kept)?;
        }
        None => ctx.documents().create(LATEST, &room)?,
    }
    ctx.publish(ControlRoomRebuilt {
        generated_at: room.generated_at,
        calculation_version: CALCULATION,
        snapshot_ids: room.snapshots.iter().map(|snapshot| snapshot.id).collect(),
    });
    Ok(room)
}

/// Returns the control room as last rebuilt; if it never was, computes it without storing it.
pub(crate) fn show(ctx: &Ctx) -> Result<ControlRoom> {
    match ctx.documents::<ControlRoom>().find(LATEST)? {
        Some(kept) => Ok(kept.value),
        None => Ok(compute(ctx)?),
    }
}

fn compute(scope: &Scope) -> Result<ControlRoom, DocumentError> {
    let activities @ [.., month] = snapshots::activities(scope)?;
    Ok(ControlRoom {
        calculation_version: CALCULATION.to_owned(),
        generated_at: scope.now(),
        match_suggestions: suggestions(scope)?,
        outcomes: outcomes::compute(scope, month)?,
        recent_transitions: transitions(scope)?,
        recurring_findings: recurring(scope)?,
        snapshots: snapshots::compute(scope, activities)?,
    })
}

fn suggestions(scope: &Scope) -> Result<Vec<MatchSuggestionResponse>, DocumentError> {
    let newest = |state: SuggestionState, most: usize| {
        let some = scope.documents::<MatchSuggestion>().query().equals("state", name(&state));
        some.limit(u32::try_from(most).unwrap_or(u32::MAX)).list()
    };
    let mut decided = newest(SuggestionState::Accepted, MOST_DECIDED)?;
    decided.extend(newest(SuggestionState::Rejected, MOST_DECIDED)?);
    decided.sort_by(|a, b| b.id.cmp(&a.id));
    decided.truncate(MOST_DECIDED);
    let pending = newest(SuggestionState::Pending, MOST_PENDING)?;
    Ok(pending.into_iter().chain(decided).map(Into::into).collect())
}

fn transitions(scope: &Scope) -> Result<Vec<TransitionRecord>, DocumentError> {
    let newest = scope.documents::<StoredTransition>().query().limit(MOST_ENTRIES).list()?;
    Ok(newest.into_iter().map(|transition| transition.value.record).collect())
}

fn recurring(scope: &Scope) -> Result<Vec<FindingSummary>, DocumentError> {
    let recurring = scope.documents::<Finding>().query().equals("recurring", true);
    let riskiest = recurring.descending("open").descending("risk_rank").limit(MOST_ENTRIES);
    Ok(riskiest.list()?.into_iter().map(Into::into).collect())
}
