//! Ends uploads that were not completed in time, and uploads whose checks did not end.
//!
//! Invariant: an upload that has not ended has a waiting job. So a job that fails again and again
//! enqueues itself for the next day, and a job that a user cancels is enqueued again.

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobOptions, Scope};
use area_shared::queue::JobCancelled;

use crate::upload::{Refusal, Stage, Upload, UploadRejected};

/// Time without progress of its checks after which an upload is rejected, in seconds.
const PATIENCE_SECONDS: i64 = 3_600;

/// Number of attempts of the job. By default they take almost four days, in which a version that
/// cannot run the job can be replaced.
pub(crate) const EXPIRY_ATTEMPTS: u32 = 100;

/// Number of attempts to end an upload. Later attempts only put the job off.
const MOST_ATTEMPTS: u32 = 20;

/// Delay after the last attempt to end an upload, in seconds.
const PUT_OFF_SECONDS: i64 = 24 * 3600;

/// Job that runs after the `expires_at` of an upload: marks it as expired if the client has not
/// completed it, or rejects it if its checks have stopped.
#[derive(Serialize, Deserialize)]
pub(crate) struct ExpireUploadJob {
    pub(crate) upload_id: Uuid,
}

job!(ExpireUploadJob, "expire");

/// Enqueues the job that ends an upload.
pub(crate) fn enqueue(scope: &Scope, upload_id: Uuid, at: Timestamp) {
    let later = JobOptions { at: Some(at), resource: Some(upload_id), ..JobOptions::default() };
    scope.enqueue_with(&ExpireUploadJob { upload_id }, later);
}

/// Enqueues the job that ends an upload again if a user cancelled it.
pub(crate) fn job_cancelled(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let cancelled: JobCancelled = event.data()?;
    let Some(upload_id) = cancelled.resource_of::<ExpireUploadJob>("uploads") else {
        return Ok(Outcome::Done);
    };
    let upload = ctx.documents::<Upload>().find(upload_id)?;
    if let Some(upload) = upload.filter(|upload| !upload.validation_stage.is_final()) {
        enqueue(ctx, upload_id, upload.expires_at);
    }
    Ok(Outcome::Done)
}

pub(crate) fn run(ctx: &JobCtx, job: ExpireUploadJob) -> JobResult<ExpireUploadJob> {
    if ctx.attempt() > MOST_ATTEMPTS {
        enqueue(ctx, job.upload_id, ctx.now().plus_seconds(PUT_OFF_SECONDS));
        return Ok(Outcome::Done);
    }
    let Some(mut upload) = ctx.documents::<Upload>().find(job.upload_id)? else {
        return Ok(Outcome::Done);
    };
    if upload.is_under_way() {
        let until = upload.updated_at.plus_seconds(PATIENCE_SECONDS);
        if ctx.now() < until {
            return Ok(Outcome::Retry(until, "its content is still being checked".to_owned()));
        }
        let refusal = given_up();
        ctx.publish(UploadRejected::of(&upload, &refusal));
        upload.reject(ctx, refusal);
    } else if matches!(upload.validation_stage, Stage::AwaitingUpload | Stage::Uploaded) {
        upload.discard(ctx);
        upload.validation_stage = Stage::Expired;
        upload.refusal = Some(expired(&upload));
    } else {
        return Ok(Outcome::Done);
    }
    ctx.documents().replace(&mut upload)?;
    Ok(Outcome::Done)
}

fn given_up() -> Refusal {
    let detail = "The content could not be checked. Upload it again; if that happens again, open a \
        support case with this upload's id.";
    Refusal::new("processing_failed", detail)
}

fn expired(upload: &Upload) -> Refusal {
    let detail = format!(
        "The upload was not sent and completed before {}. Announce a new one.",
        upload.expires_at
    );
    Refusal::new("upload_expired", detail)
}
