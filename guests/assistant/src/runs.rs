//! Runs: the execution of one answer, its status and its cost.

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{JobOptions, Scope};

use crate::answering::CreateAnswerJob;
use crate::endpoints::{self, StoredModelEndpoint};
use crate::snapshots;

/// Status of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunStatus {
    /// The run waits for a worker or for the next attempt.
    Queued,
    /// A worker executes the run.
    Running,
    /// The run created an answer.
    Succeeded,
    /// The run ended without an answer.
    Failed,
}

impl RunStatus {
    /// Whether the run has not ended.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

/// What creates the assistant's answer to a message: the service itself or a language model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Specialist")]
pub(crate) enum AnswerCreator {
    /// The service creates the answer from the workspace's records, without a model.
    Workspace,
    /// A language model creates the answer; its input includes the workspace's records.
    Model,
}

/// Value of `route` for a run without a model.
const WORKSPACE_ROUTE: &str = "workspace";

/// A run: the creation of one answer to a user's message.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Run {
    assistant_message_id: Option<Uuid>,
    /// Whether the model's server took part of the input from its cache.
    cache_hit: bool,
    cached_input_tokens: Option<u32>,
    completed_at: Option<Timestamp>,
    pub(crate) context_snapshot_id: Option<Uuid>,
    conversation_id: Uuid,
    /// Cost in US dollars; null if the operator sets no price for the model.
    cost_usd: Option<String>,
    created_at: Timestamp,
    /// Error code of the latest failure; null if there was none.
    error_code: Option<String>,
    id: Uuid,
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
    /// `workspace` for a run without a model; otherwise the model endpoint's name, a slash and the
    /// model.
    route: String,
    specialist: AnswerCreator,
    started_at: Option<Timestamp>,
    status: RunStatus,
    user_message_id: Uuid,
}

/// A stored run.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredRun {
    pub(crate) assistant_message_id: Option<Uuid>,
    pub(crate) cache_hit: bool,
    pub(crate) cached_input_tokens: Option<u32>,
    pub(crate) completed_at: Option<Timestamp>,
    pub(crate) context_snapshot_id: Option<Uuid>,
    pub(crate) conversation_id: Uuid,
    pub(crate) cost_usd: Option<String>,
    pub(crate) error_code: Option<String>,
    pub(crate) input_tokens: Option<u32>,
    pub(crate) output_tokens: Option<u32>,
    pub(crate) route: String,
    pub(crate) specialist: AnswerCreator,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) status: RunStatus,
    pub(crate) user_message_id: Uuid,
    /// Id of the model endpoint; null for a run without a model.
    pub(crate) model_endpoint_id: Option<Uuid>,
    pub(crate) model: Option<String>,
}

document!(StoredRun, "runs");

impl From<Stored<StoredRun>> for Run {
    fn from(stored: Stored<StoredRun>) -> Self {
        let (id, created_at, run) = (stored.uuid(), stored.created_at, stored.value);
        Self {
            assistant_message_id: run.assistant_message_id,
            cache_hit: run.cache_hit,
            cached_input_tokens: run.cached_input_tokens,
            completed_at: run.completed_at,
            context_snapshot_id: run.context_snapshot_id,
            conversation_id: run.conversation_id,
            cost_usd: run.cost_usd,
            created_at,
            error_code: run.error_code,
            id,
            input_tokens: run.input_tokens,
            output_tokens: run.output_tokens,
            route: run.route,
            specialist: run.specialist,
            started_at: run.started_at,
            status: run.status,
            user_message_id: run.user_message_id,
        }
    }
}

/// Published when a run has ended, with or without an answer.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunCompleted {
    pub(crate) run_id: Uuid,
    pub(crate) conversation_id: Uuid,
    pub(crate) status: RunStatus,
    pub(crate) assistant_message_id: Option<Uuid>,
    pub(crate) error_code: Option<String>,
}

event!(RunCompleted, "assistant.run_completed");

/// Model endpoint and model that a message requests; the default ones if absent.
#[derive(Default)]
pub(crate) struct RequestedModel {
    pub(crate) model_endpoint_id: Option<Uuid>,
    pub(crate) model: Option<String>,
}

/// Returns the requested endpoint and model, or the default ones; `None` if the service answers
/// without a model.
fn choose(
    ctx: &Ctx,
    wish: RequestedModel,
) -> Result<Option<(Stored<StoredModelEndpoint>, String)>> {
    let endpoint = match wish.model_endpoint_id {
        Some(id) => Some(named(ctx, id)?),
        None => endpoints::preferred(ctx)?,
    };
    let Some(endpoint) = endpoint else {
        return match wish.model {
            None => Ok(None),
            Some(_) => Err(Problem::validation("/model", "is offered by no active model endpoint")
                .hint("Create a model endpoint that offers it, or name no model.")),
        };
    };
    let model = match wish.model {
        Some(model) if endpoint.offers(&model) => model,
        Some(_) => {
            let message = format!("is not among the models of {:?}", endpoint.name);
            return Err(Problem::validation("/model", message));
        }
        None => endpoint.model_ids.first().map(|id| id.0.clone()).unwrap_or_default(),
    };
    Ok(Some((endpoint, model)))
}

fn named(ctx: &Ctx, id: Uuid) -> Result<Stored<StoredModelEndpoint>> {
    let endpoint = ctx.documents::<StoredModelEndpoint>().find(id)?;
    endpoint.filter(|endpoint| endpoint.active).ok_or_else(|| {
        Problem::validation(
            "/model_endpoint_id",
            "is not an active model endpoint of this workspace",
        )
    })
}

/// Creates a run for a message and enqueues its job.
pub(crate) fn begin(
    ctx: &Ctx,
    conversation_id: Uuid,
    user_message_id: Uuid,
    wish: RequestedModel,
) -> Result<Run> {
    let chosen = choose(ctx, wish)?;
    let route = chosen.as_ref().map(|(endpoint, model)| format!("{}/{model}", endpoint.name));
    let value = StoredRun {
        assistant_message_id: None,
        cache_hit: false,
        cached_input_tokens: None,
        completed_at: None,
        context_snapshot_id: snapshots::latest(ctx)?,
        conversation_id,
        cost_usd: None,
        error_code: None,
        input_tokens: None,
        output_tokens: None,
        route: route.unwrap_or_else(|| WORKSPACE_ROUTE.to_owned()),
        specialist: if chosen.is_some() { AnswerCreator::Model } else { AnswerCreator::Workspace },
        started_at: None,
        status: RunStatus::Queued,
        user_message_id,
        model_endpoint_id: chosen.as_ref().map(|(endpoint, _)| endpoint.uuid()),
        model: chosen.map(|(_, model)| model),
    };
    let id = ctx.new_id();
    let run = ctx.documents().create_stored(id, value)?;
    ctx.enqueue_with(
        &CreateAnswerJob::new(id),
        JobOptions { resource: Some(id), ..JobOptions::default() },
    );
    Ok(run.into())
}

/// Returns the latest runs of a conversation, oldest first.
pub(crate) fn latest(
    scope: &Scope,
    conversation_id: Uuid,
    limit: u32,
) -> Result<Vec<Stored<StoredRun>>> {
    let runs = scope.documents::<StoredRun>().query();
    let mut runs = runs.equals("conversation_id", conversation_id).limit(limit).list()?;
    runs.reverse();
    Ok(runs)
}

/// Refuses a message while another run of the conversation has not ended, because the input of a
/// run includes all earlier messages.
pub(crate) fn check_none_open(scope: &Scope, conversation_id: Uuid) -> Result<()> {
    let runs = latest(scope, conversation_id, 1)?;
    if runs.iter().any(|run| run.status.is_open()) {
        let detail = "The answer to the previous message is still being created.";
        return Err(Problem::conflict("run_in_progress", detail)
            .hint("Send this again when the run has succeeded or failed."));
    }
    Ok(())
}

/// Query parameters that filter the list of runs.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    conversation_id: Uuid,
    /// Only runs with this status.
    status: Option<RunStatus>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<Run>> {
    crate::conversations::find(ctx, params.conversation_id)?;
    let runs = ctx.documents::<StoredRun>().query();
    let runs = runs.equals("conversation_id", params.conversation_id);
    let runs = runs.equals_if("status", params.status.as_ref().map(name));
    Ok(runs.paging(paging).page()?.map(Run::from))
}

/// Path parameters of a run: ids of the conversation and the run.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RunPath {
    conversation_id: Uuid,
    run_id: Uuid,
}

fn find(ctx: &Ctx, path: &RunPath) -> Result<Stored<StoredRun>> {
    crate::conversations::find(ctx, path.conversation_id)?;
    let run = ctx.documents::<StoredRun>().get(path.run_id)?;
    if run.conversation_id == path.conversation_id { Ok(run) } else { Err(Problem::not_found()) }
}

pub(crate) fn show(ctx: &Ctx, Params(path): Params<RunPath>) -> Result<Versioned<Run>> {
    Ok(find(ctx, &path)?.versioned(Run::from))
}

/// Answers the message of a failed run again, with the model endpoint that is the default now.
pub(crate) fn retry(ctx: &Ctx, Params(path): Params<RunPath>) -> Result<Created<Run>> {
    let run = find(ctx, &path)?;
    if run.status != RunStatus::Failed {
        let detail = format!("The run is {}, not failed.", name(&run.status));
        return Err(Problem::conflict("run_not_failed", detail));
    }
    let mut conversation = crate::conversations::open(ctx, path.conversation_id)?;
    check_none_open(ctx, path.conversation_id)?;
    let again = begin(ctx, path.conversation_id, run.user_message_id, RequestedModel::default())?;
    conversation.context_snapshot_id = again.context_snapshot_id;
    ctx.documents().replace(&mut conversation)?;
    Ok(Created(again))
}
