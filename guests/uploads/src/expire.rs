//! Ends uploads that were not completed in time, and uploads whose checks did not end.

use area_sdk::prelude::*;

use crate::upload::{Refusal, Stage, Upload, UploadRejected};

/// Time without progress of its checks after which an upload is rejected, in seconds.
const PATIENCE_SECONDS: i64 = 3_600;

/// Job that runs after the `expires_at` of an upload: marks it as expired if the client has not
/// completed it, or rejects it if its checks have stopped.
#[derive(Serialize, Deserialize)]
pub(crate) struct ExpireUploadJob {
    pub(crate) upload_id: Uuid,
}

job!(ExpireUploadJob, "expire");

pub(crate) fn run(ctx: &JobCtx, job: ExpireUploadJob) -> JobResult<ExpireUploadJob> {
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
    Refusal {
        code: "processing_failed".to_owned(),
        detail: "The content could not be checked. Upload it again; if that happens again, open a \
            support case with this upload's id."
            .to_owned(),
    }
}

fn expired(upload: &Upload) -> Refusal {
    Refusal {
        code: "upload_expired".to_owned(),
        detail: format!(
            "The upload was not sent and completed before {}. Announce a new one.",
            upload.expires_at
        ),
    }
}
