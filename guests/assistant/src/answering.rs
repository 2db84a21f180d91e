//! The job that creates the answer of a run. One step reads the records and the next calls the
//! model, so that no transaction is open while the model works.

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobError};
use area_shared::queue::JobCancelled;
use serde_json::{Map, Value, json};

use crate::chat::{self, Completion};
use crate::conversations::StoredConversation;
use crate::endpoints::StoredModelEndpoint;
use crate::facts::{self, CitableRecord, CollectedRecords};
use crate::messages::{self, MessageAuthor, StoredMessage};
use crate::prices;
use crate::prompt;
use crate::runs::{AnswerCreator, RunCompleted, RunStatus, StoredRun};
use crate::specialist;
use crate::upstream::{self, ModelRequestFailure};

/// Timeout of one request to a language model, in milliseconds.
const TIMEOUT_MS: u32 = 60_000;

/// Timeout of the job that creates an answer, in milliseconds: two requests (the second one if the
/// model needs `max_completion_tokens`) and a margin.
pub(crate) const JOB_TIMEOUT_MS: u32 = 150_000;

const MOST_RESPONSE_BYTES: u32 = 1024 * 1024;

/// Maximum number of attempts to get an answer after temporary failures of the model's server.
/// Later attempts of the job end the run.
const MOST_ATTEMPTS: u32 = 3;

/// Maximum number of attempts of the job that creates an answer. A run stays open forever if none
/// of them can end it: by default they take an hour and a half, in which a version that cannot run
/// the job can be replaced.
pub(crate) const JOB_ATTEMPTS: u32 = 100;

/// Delay before the next attempt to get an answer, in seconds, multiplied by the number of the
/// attempt.
const RETRY_SECONDS: i64 = 3;

/// Job that creates the answer to a user's message (a run).
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct CreateAnswerJob {
    run_id: Uuid,
    prepared: Option<PreparedModelRequest>,
}

/// A request for an answer that is ready to send to the model. Only the attempt that prepared it
/// sends it.
#[derive(Clone, Serialize, Deserialize)]
struct PreparedModelRequest {
    attempt: u32,
    url: String,
    credential: Option<String>,
    body: Map<String, Value>,
    /// Records that were sent to the model and that the answer may cite.
    sources: Vec<CitableRecord>,
}

job!(CreateAnswerJob, "answer_message");

impl CreateAnswerJob {
    pub(crate) fn new(run_id: Uuid) -> Self {
        Self { run_id, prepared: None }
    }
}

/// A run that has not ended, with its conversation.
struct RunWithConversation {
    run: Stored<StoredRun>,
    conversation: Stored<StoredConversation>,
}

pub(crate) fn run(ctx: &JobCtx, job: CreateAnswerJob) -> JobResult<CreateAnswerJob> {
    match job.prepared {
        Some(prepared) if prepared.attempt == ctx.attempt() => {
            let answer = ask(ctx, &prepared);
            note(ctx, job.run_id, answer, &prepared.sources)
        }
        _ => begin(ctx, job.run_id),
    }
}

/// Handles the event `job.cancelled`: ends the run whose job a user cancelled, which would
/// otherwise stay open forever.
pub(crate) fn job_cancelled(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let job: JobCancelled = event.data()?;
    if let Some(id) = job.resource_of::<CreateAnswerJob>("assistant")
        && let Some(open) = look_up(ctx, id)?
    {
        fail(ctx, open, "cancelled")?;
    }
    Ok(Outcome::Done)
}

/// Returns the run and its conversation; `None` if the run has ended or the conversation was
/// deleted.
fn look_up(ctx: &JobCtx, id: Uuid) -> Result<Option<RunWithConversation>, JobError> {
    let Some(run) = ctx.documents::<StoredRun>().find(id)? else { return Ok(None) };
    let conversation = ctx.documents::<StoredConversation>().find(run.conversation_id)?;
    let open = conversation.map(|conversation| RunWithConversation { run, conversation });
    Ok(open.filter(|open| open.run.status.is_open()))
}

fn begin(ctx: &JobCtx, id: Uuid) -> JobResult<CreateAnswerJob> {
    let Some(mut open) = look_up(ctx, id)? else { return Ok(Outcome::Done) };
    if ctx.attempt() > MOST_ATTEMPTS {
        // The former attempts ended without a result, which is not the model's fault.
        return fail(ctx, open, "internal_error");
    }
    open.run.status = RunStatus::Running;
    open.run.started_at = open.run.started_at.or(Some(ctx.now()));
    let question = ctx.documents::<StoredMessage>().get(open.run.user_message_id)?;
    let known = facts::collect(ctx, &question.content)?;
    match open.run.specialist {
        AnswerCreator::Workspace => answer_from_records(ctx, open, &question.content, &known),
        AnswerCreator::Model => prepare(ctx, open, &question, known),
    }
}

fn answer_from_records(
    ctx: &JobCtx,
    mut open: RunWithConversation,
    question: &str,
    known: &CollectedRecords,
) -> JobResult<CreateAnswerJob> {
    let text = specialist::answer(question, known);
    let structured = structured(
        &text,
        &known.sources,
        json!({
            "answered_by": AnswerCreator::Workspace,
            "facts": known.facts,
            "notice": specialist::NOTICE,
        }),
    );
    let run = &mut open.run;
    run.input_tokens = Some(0);
    run.cached_input_tokens = Some(0);
    run.output_tokens = Some(0);
    run.cost_usd = Some("0".to_owned());
    succeed(ctx, open, text, structured)
}

/// Prepares the request to the model; the next step sends it.
fn prepare(
    ctx: &JobCtx,
    mut open: RunWithConversation,
    question: &Stored<StoredMessage>,
    known: CollectedRecords,
) -> JobResult<CreateAnswerJob> {
    let id = open.run.model_endpoint_id.unwrap_or_default();
    let endpoint = ctx.documents::<StoredModelEndpoint>().find(id)?;
    let Some(endpoint) = endpoint.filter(|endpoint| endpoint.active) else {
        return fail(ctx, open, "endpoint_unavailable");
    };
    let conversation = open.run.conversation_id;
    let mut earlier = messages::latest(ctx, conversation, prompt::MOST_EARLIER)?;
    earlier.retain(|message| message.position < question.position);
    let model = open.run.model.as_deref().unwrap_or_default();
    let prepared = PreparedModelRequest {
        attempt: ctx.attempt(),
        url: upstream::url(&endpoint.base_url, "chat/completions"),
        credential: endpoint.credential(id),
        body: prompt::body(model, &known, &earlier, &question.content),
        sources: known.sources,
    };
    ctx.documents().replace(&mut open.run)?;
    Ok(Outcome::Continue(CreateAnswerJob { run_id: open.run.uuid(), prepared: Some(prepared) }))
}

/// Sends the request to the model. Sends it again with the other name of the token limit if the
/// server requires that name.
fn ask(ctx: &JobCtx, prepared: &PreparedModelRequest) -> Result<Completion, ModelRequestFailure> {
    let request = |body: &Map<String, Value>| {
        let (url, credential) = (prepared.url.clone(), prepared.credential.clone());
        let body = Value::Object(body.clone()).to_string();
        upstream::request(url, credential, Some(body), TIMEOUT_MS, MOST_RESPONSE_BYTES)
    };
    let answer = match upstream::send(ctx, &request(&prepared.body)) {
        Err((failure, refusal)) => match chat::renamed_bound(&prepared.body, &refusal) {
            Some(body) => upstream::send(ctx, &request(&body)).map_err(|(failure, _)| failure)?,
            None => return Err(failure),
        },
        Ok(answer) => answer,
    };
    chat::read(&answer)
}

/// Stores the answer of the model, or its failure.
fn note(
    ctx: &JobCtx,
    id: Uuid,
    answer: Result<Completion, ModelRequestFailure>,
    sources: &[CitableRecord],
) -> JobResult<CreateAnswerJob> {
    let Some(mut open) = look_up(ctx, id)? else { return Ok(Outcome::Done) };
    let completion = match answer {
        Ok(completion) => completion,
        Err(failure) if failure.transient && ctx.attempt() < MOST_ATTEMPTS => {
            return again(ctx, open, &failure);
        }
        Err(failure) => return fail(ctx, open, failure.code),
    };
    let run = &mut open.run;
    let model = run.model.clone().unwrap_or_default();
    if let Some(tokens) = completion.tokens {
        run.input_tokens = Some(tokens.input);
        run.cached_input_tokens = Some(tokens.cached_input);
        run.output_tokens = Some(tokens.output);
        run.cache_hit = tokens.cached_input > 0;
        run.cost_usd = prices::cost(ctx, &model, tokens);
    }
    let structured = structured(
        &completion.content,
        sources,
        json!({
            "answered_by": AnswerCreator::Model,
            "finish_reason": completion.finish_reason,
            "model": completion.model.unwrap_or(model),
            "model_endpoint_id": run.model_endpoint_id,
        }),
    );
    succeed(ctx, open, completion.content, structured)
}

/// Schedules the next attempt to get an answer after a temporary failure.
fn again(
    ctx: &JobCtx,
    mut open: RunWithConversation,
    failure: &ModelRequestFailure,
) -> JobResult<CreateAnswerJob> {
    open.run.status = RunStatus::Queued;
    open.run.error_code = Some(failure.code.to_owned());
    ctx.documents().replace(&mut open.run)?;
    let wait = failure.retry_after.unwrap_or(RETRY_SECONDS * i64::from(ctx.attempt()));
    Ok(Outcome::Retry(ctx.now().plus_seconds(wait), failure.code.to_owned()))
}

/// Returns the member `structured` of an answer: the records that it cites, and how the answer was
/// created.
fn structured(text: &str, sources: &[CitableRecord], how: Value) -> Map<String, Value> {
    let mut structured = match how {
        Value::Object(how) => how,
        _ => Map::new(),
    };
    structured.insert("citations".to_owned(), json!(prompt::cited(text, sources)));
    structured
}

fn succeed(
    ctx: &JobCtx,
    mut open: RunWithConversation,
    content: String,
    structured: Map<String, Value>,
) -> JobResult<CreateAnswerJob> {
    let message = StoredMessage {
        author_id: None,
        content,
        conversation_id: open.run.conversation_id,
        position: open.conversation.message_count,
        role: MessageAuthor::Assistant,
        structured: Some(structured),
    };
    let id = ctx.new_id();
    ctx.documents().create(id, &message)?;
    open.conversation.message_count += 1;
    ctx.documents().replace(&mut open.conversation)?;
    open.run.assistant_message_id = Some(id);
    end(ctx, open, RunStatus::Succeeded, None)
}

fn fail(ctx: &JobCtx, open: RunWithConversation, code: &str) -> JobResult<CreateAnswerJob> {
    end(ctx, open, RunStatus::Failed, Some(code.to_owned()))
}

fn end(
    ctx: &JobCtx,
    mut open: RunWithConversation,
    status: RunStatus,
    error_code: Option<String>,
) -> JobResult<CreateAnswerJob> {
    open.run.status = status;
    open.run.error_code = error_code;
    open.run.completed_at = Some(ctx.now());
    ctx.documents().replace(&mut open.run)?;
    ctx.publish(RunCompleted {
        run_id: open.run.uuid(),
        conversation_id: open.run.conversation_id,
        status,
        assistant_message_id: open.run.assistant_message_id,
        error_code: open.run.error_code.clone(),
    });
    Ok(Outcome::Done)
}
