//! Match suggestions (two findings may be the same), and users' decisions about them.

use area_sdk::prelude::*;
use area_sdk::text::name;
use serde_json::{Map, json};

use crate::finding::Finding;
use crate::lifecycle::FindingTransitioned;
use crate::observation::SourceTool;
use crate::state::{Actor, FindingState};
use crate::transition::{PendingTransition, pass};

/// Version of the algorithm that selects and compares pairs of findings.
const ALGORITHM: &str = "match-v1";
const METHOD: &str = "token_jaccard";

/// Maximum number of findings in a match group that are moved to another group when the groups are
/// joined.
const MOST_OF_A_GROUP: u32 = 1000;
/// Maximum number of tools that are stored with a finding.
const MOST_TOOLS: usize = 20;

/// Whether a user has decided about a match suggestion, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SuggestionState {
    /// No user has decided about the match suggestion yet.
    Pending,
    /// A user decided that both findings are the same.
    Accepted,
    /// A user decided that the findings are different.
    Rejected,
}

/// A stored suggestion that two findings may be the same, with the user's decision about it.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct MatchSuggestion {
    /// Id of the older of the two findings.
    pub(crate) left_finding_id: Uuid,
    pub(crate) right_finding_id: Uuid,
    pub(crate) similarity: String,
    pub(crate) rationale: String,
    pub(crate) state: SuggestionState,
    pub(crate) decided_at: Option<Timestamp>,
    pub(crate) decided_by: Option<Uuid>,
    pub(crate) created_at: Timestamp,
}

document!(MatchSuggestion, "match_suggestions");

/// A suggestion that two findings may be the same, as responses contain it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MatchSuggestion")]
pub(crate) struct MatchSuggestionResponse {
    algorithm_version: String,
    created_at: Timestamp,
    decided_at: Option<Timestamp>,
    decided_by: Option<Uuid>,
    id: Uuid,
    /// Id of the older finding. If the suggestion is accepted and both findings are open, the right
    /// one becomes its duplicate.
    left_finding_id: Uuid,
    method: String,
    rationale: String,
    right_finding_id: Uuid,
    /// Similarity of the findings from 0 to 1, with four decimals.
    similarity: String,
    state: SuggestionState,
}

impl From<Stored<MatchSuggestion>> for MatchSuggestionResponse {
    fn from(stored: Stored<MatchSuggestion>) -> Self {
        let id = stored.uuid();
        let suggestion = stored.value;
        Self {
            algorithm_version: ALGORITHM.to_owned(),
            created_at: suggestion.created_at,
            decided_at: suggestion.decided_at,
            decided_by: suggestion.decided_by,
            id,
            left_finding_id: suggestion.left_finding_id,
            method: METHOD.to_owned(),
            rationale: suggestion.rationale,
            right_finding_id: suggestion.right_finding_id,
            similarity: suggestion.similarity,
            state: suggestion.state,
        }
    }
}

/// Published when a user decided about a match suggestion.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SuggestionDecided {
    suggestion_id: Uuid,
    left_finding_id: Uuid,
    right_finding_id: Uuid,
    state: SuggestionState,
    decided_by: Uuid,
}

event!(SuggestionDecided, "match_suggestion.decided");

/// Query parameters that filter the list of match suggestions.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    state: Option<SuggestionState>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<MatchSuggestionResponse>> {
    let all = ctx.documents::<MatchSuggestion>().query();
    let some = all.equals_if("state", params.state.as_ref().map(name));
    Ok(some.paging(paging).page()?.map(Into::into))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<MatchSuggestionResponse>> {
    let suggestion = ctx.documents::<MatchSuggestion>().get(id)?;
    Ok(suggestion.versioned(MatchSuggestionResponse::from))
}

/// A user's verdict on a match suggestion.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The user says that both findings of the match suggestion are the same.
    Accepted,
    /// The user says that the findings of the match suggestion are different.
    Rejected,
}

/// A request to decide about a match suggestion.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Decision")]
pub(crate) struct SuggestionDecisionRequest {
    decision: Verdict,
    /// Reason of the decision; stored with the transition of the finding that becomes a duplicate.
    #[schemars(length(min = 1, max = 4000))]
    reason: Option<String>,
}

pub(crate) fn decide(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(decision): Body<SuggestionDecisionRequest>,
) -> Result<Versioned<MatchSuggestionResponse>> {
    let mut suggestion = ctx.documents::<MatchSuggestion>().get(id)?;
    ctx.check_if_match(suggestion.version)?;
    if suggestion.state != SuggestionState::Pending {
        let state = name(&suggestion.state);
        let detail = format!("This suggestion is already {state}; a decision cannot be changed.");
        return Err(Problem::conflict("suggestion_decided", detail));
    }
    if decision.decision == Verdict::Accepted {
        merge(ctx, id, &suggestion, decision.reason)?;
    }
    suggestion.state = match decision.decision {
        Verdict::Accepted => SuggestionState::Accepted,
        Verdict::Rejected => SuggestionState::Rejected,
    };
    suggestion.decided_at = Some(ctx.now());
    suggestion.decided_by = Some(ctx.user());
    ctx.documents().replace(&mut suggestion)?;
    ctx.publish(SuggestionDecided {
        suggestion_id: id,
        left_finding_id: suggestion.left_finding_id,
        right_finding_id: suggestion.right_finding_id,
        state: suggestion.state,
        decided_by: ctx.user(),
    });
    Ok(suggestion.versioned(MatchSuggestionResponse::from))
}

/// Puts both findings of an accepted match suggestion into one match group. If both are open, the
/// newer one becomes a duplicate of the older one. If one is settled, neither becomes a duplicate,
/// because that would hide the open one.
fn merge(ctx: &Ctx, id: Uuid, suggestion: &MatchSuggestion, reason: Option<String>) -> Result<()> {
    let mut left = ctx.documents::<Finding>().get(suggestion.left_finding_id)?;
    let mut right = ctx.documents::<Finding>().get(suggestion.right_finding_id)?;
    let group = join_groups(ctx, &left, &right)?;
    (left.match_group_id, right.match_group_id) = (Some(group), Some(group));
    if left.open && right.state.next(Actor::Person).contains(&FindingState::Duplicate) {
        let mut metadata = Map::new();
        metadata.insert("match_suggestion_id".to_owned(), json!(id));
        metadata.insert("duplicate_of".to_owned(), json!(left.id));
        let change = PendingTransition {
            to: FindingState::Duplicate,
            actor_id: Some(ctx.user()),
            reason: reason.or_else(|| Some(suggestion.rationale.clone())),
            metadata,
            ..PendingTransition::default()
        };
        let transition = pass(ctx, suggestion.right_finding_id, &mut right, change);
        right.duplicate_of = Some(suggestion.left_finding_id);
        add_tools(&mut left.source_tools, &right.source_tools);
        ctx.documents().create(transition.record.id, &transition)?;
        ctx.publish(FindingTransitioned::of(&transition.record));
    }
    ctx.documents().replace(&mut left)?;
    ctx.documents().replace(&mut right)?;
    Ok(())
}

fn add_tools(to: &mut Vec<SourceTool>, from: &[SourceTool]) {
    for tool in from {
        if to.len() < MOST_TOOLS && !to.contains(tool) {
            to.push(tool.clone());
        }
    }
}

/// Returns the match group for both findings. If they have different groups, moves the members of
/// the right one's group to the left one's.
fn join_groups(ctx: &Ctx, left: &Stored<Finding>, right: &Stored<Finding>) -> Result<Uuid> {
    let (ours, theirs) = match (left.match_group_id, right.match_group_id) {
        (Some(ours), Some(theirs)) if ours != theirs => (ours, theirs),
        (Some(group), _) | (None, Some(group)) => return Ok(group),
        (None, None) => return Ok(ctx.new_id()),
    };
    let members = ctx.documents::<Finding>().query().equals("match_group_id", theirs);
    for mut member in members.limit(MOST_OF_A_GROUP).list()? {
        if member.id != right.id {
            member.match_group_id = Some(ours);
            ctx.documents().replace(&mut member)?;
        }
    }
    Ok(ours)
}
