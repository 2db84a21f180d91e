//! Validation of a model endpoint: a job that lists the server's models with the endpoint's key.
//! The request is a separate step, so that no transaction is open while the server responds.

use area_sdk::prelude::*;
use area_sdk::{JobError, JobOptions};
use serde_json::Value;

use crate::endpoints::StoredModelEndpoint;
use crate::upstream::{self, ModelRequestFailure};

const TIMEOUT_MS: u32 = 15_000;
const MOST_RESPONSE_BYTES: u32 = 4 * 1024 * 1024;

/// Maximum number of attempts to validate a model endpoint after temporary failures.
const MOST_ATTEMPTS: u32 = 3;

/// Delay before the next attempt to validate a model endpoint, in seconds.
const RETRY_SECONDS: i64 = 30;

/// Job that validates a model endpoint: checks that its server lists all of its models.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ValidateEndpointJob {
    model_endpoint_id: Uuid,
    generation: u32,
    /// Request that is ready to send; `None` before the first step of the job has read the
    /// endpoint.
    prepared: Option<PreparedValidationRequest>,
}

/// A request for a server's models that is ready to send. Only the attempt that prepared it sends
/// it; a later one reads the endpoint again.
#[derive(Clone, Serialize, Deserialize)]
struct PreparedValidationRequest {
    attempt: u32,
    url: String,
    credential: Option<String>,
    model_ids: Vec<String>,
}

job!(ValidateEndpointJob, "validate_model_endpoint");

/// Published when a model endpoint was validated: its server lists all of its models.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EndpointValidated")]
pub(crate) struct ModelEndpointValidated {
    model_endpoint_id: Uuid,
}

event!(ModelEndpointValidated, "model_endpoint.validated");

/// Published when the validation of a model endpoint failed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EndpointFailed")]
pub(crate) struct EndpointValidationFailed {
    model_endpoint_id: Uuid,
    error_code: String,
}

event!(EndpointValidationFailed, "model_endpoint.failed");

/// Enqueues the validation of a model endpoint, at most once for each generation.
pub(crate) fn enqueue(ctx: &Ctx, model_endpoint_id: Uuid, generation: u32) {
    let later = JobOptions {
        resource: Some(model_endpoint_id),
        dedupe_key: Some(format!("{model_endpoint_id}/{generation}")),
        at: None,
    };
    ctx.enqueue_with(&ValidateEndpointJob { model_endpoint_id, generation, prepared: None }, later);
}

pub(crate) fn run(ctx: &JobCtx, job: ValidateEndpointJob) -> JobResult<ValidateEndpointJob> {
    match &job.prepared {
        Some(prepared) if prepared.attempt == ctx.attempt() => {
            let found = ask(ctx, prepared);
            note(ctx, &job, found)
        }
        _ => prepare(ctx, job),
    }
}

/// Returns the model endpoint to validate; `None` if it was changed or deleted after the job was
/// enqueued.
fn look_up(
    ctx: &JobCtx,
    job: &ValidateEndpointJob,
) -> Result<Option<Stored<StoredModelEndpoint>>, JobError> {
    let found = ctx.documents::<StoredModelEndpoint>().find(job.model_endpoint_id)?;
    Ok(found.filter(|endpoint| endpoint.generation == job.generation))
}

fn prepare(ctx: &JobCtx, job: ValidateEndpointJob) -> JobResult<ValidateEndpointJob> {
    let Some(endpoint) = look_up(ctx, &job)? else { return Ok(Outcome::Done) };
    let prepared = PreparedValidationRequest {
        attempt: ctx.attempt(),
        url: upstream::url(&endpoint.base_url, "models"),
        credential: endpoint.credential(job.model_endpoint_id),
        model_ids: endpoint.value.model_ids.into_iter().map(|id| id.0).collect(),
    };
    Ok(Outcome::Continue(ValidateEndpointJob { prepared: Some(prepared), ..job }))
}

/// Checks that the server lists all models of the model endpoint.
fn ask(ctx: &JobCtx, prepared: &PreparedValidationRequest) -> Result<(), ModelRequestFailure> {
    let (url, credential) = (prepared.url.clone(), prepared.credential.clone());
    let request = upstream::request(url, credential, None, TIMEOUT_MS, MOST_RESPONSE_BYTES);
    let body = upstream::send(ctx, &request).map_err(|(failure, _)| failure)?;
    let listed = listed(&body).ok_or_else(ModelRequestFailure::invalid)?;
    let all = prepared.model_ids.iter().all(|id| listed.contains(id));
    if all { Ok(()) } else { Err(ModelRequestFailure::lasting("model_not_found")) }
}

/// Returns the model ids in a server's response `{"data": [{"id": …}, …]}`.
fn listed(body: &[u8]) -> Option<Vec<String>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let ids = body["data"].as_array()?.iter().filter_map(|model| model["id"].as_str());
    Some(ids.map(ToOwned::to_owned).collect())
}

fn note(
    ctx: &JobCtx,
    job: &ValidateEndpointJob,
    found: Result<(), ModelRequestFailure>,
) -> JobResult<ValidateEndpointJob> {
    let Some(mut endpoint) = look_up(ctx, job)? else { return Ok(Outcome::Done) };
    let model_endpoint_id = job.model_endpoint_id;
    let failure = found.err();
    endpoint.last_error_code = failure.as_ref().map(|failure| failure.code.to_owned());
    let Some(failure) = failure else {
        endpoint.last_validated_at = Some(ctx.now());
        ctx.documents().replace(&mut endpoint)?;
        ctx.publish(ModelEndpointValidated { model_endpoint_id });
        return Ok(Outcome::Done);
    };
    ctx.documents().replace(&mut endpoint)?;
    if failure.transient && ctx.attempt() < MOST_ATTEMPTS {
        let wait = failure.retry_after.unwrap_or(RETRY_SECONDS);
        return Ok(Outcome::Retry(ctx.now().plus_seconds(wait), failure.code.to_owned()));
    }
    let error_code = failure.code.to_owned();
    ctx.publish(EndpointValidationFailed { model_endpoint_id, error_code });
    Ok(Outcome::Done)
}
