//! Job that checks the content of a completed upload in three steps, so that clients can see the
//! stages: malware scan, unpacking, format detection.

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{BlobError, JobError, ScanError, Verdict};

use crate::intake::Purpose;
use crate::large::LargeContentMetadata;
use crate::unpack::UnpackedContent;
use crate::upload::{Format, MalwareStatus, Refusal, Stage, Upload, UploadReady, UploadRejected};
use crate::{MAX_BYTES, PROCESS_ATTEMPTS, format, large, unpack};

/// Job that checks a completed upload: scans, unpacks and recognizes its content.
#[derive(Serialize, Deserialize)]
pub(crate) struct CheckUploadJob {
    upload_id: Uuid,
    /// Name of the blob with the content as sent.
    received: String,
    step: CheckStep,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CheckStep {
    Begin,
    Scan,
    Validate,
}

job!(CheckUploadJob, "process");

impl CheckUploadJob {
    /// Returns the job that checks an upload, before its first step.
    pub(crate) fn of(upload_id: Uuid, received: String) -> Self {
        Self { upload_id, received, step: CheckStep::Begin }
    }
}

pub(crate) fn run(ctx: &JobCtx, job: CheckUploadJob) -> JobResult<CheckUploadJob> {
    // The scanner is called before anything is read, so that no transaction is open while it works.
    let verdict = match job.step {
        CheckStep::Scan => Some(scan(ctx, &job.received)?),
        CheckStep::Begin | CheckStep::Validate => None,
    };
    let upload = ctx.documents::<Upload>().find(job.upload_id)?;
    let same = |upload: &Stored<Upload>| {
        upload.is_under_way() && upload.received.as_ref() == Some(&job.received)
    };
    let Some(mut upload) = upload.filter(same) else { return Ok(Outcome::Done) };
    let step = match (job.step, verdict) {
        (CheckStep::Validate, _) => return validate(ctx, upload, &job.received),
        (CheckStep::Begin, _) | (CheckStep::Scan, None) => CheckStep::Scan,
        (CheckStep::Scan, Some(scanned)) => {
            upload.malware_status = scanned.status;
            if let Some(refusal) = scanned.refusal {
                return reject(ctx, upload, refusal);
            }
            CheckStep::Validate
        }
    };
    upload.validation_stage = match step {
        CheckStep::Begin | CheckStep::Scan => Stage::Scanning,
        CheckStep::Validate => Stage::Validating,
    };
    ctx.documents().replace(&mut upload)?;
    Ok(Outcome::Continue(CheckUploadJob { step, ..job }))
}

/// Result of the malware scan, and the refusal if the content is not accepted.
struct MalwareScanDecision {
    status: MalwareStatus,
    refusal: Option<Refusal>,
}

/// Scans the content for malware. While the scanner is unavailable, the job is retried. After the
/// last attempt, the content is refused, because unscanned content is never accepted.
fn scan(ctx: &JobCtx, received: &str) -> Result<MalwareScanDecision, JobError> {
    let passed = |status| Ok(MalwareScanDecision { status, refusal: None });
    let why = match ctx.scan(received) {
        Ok(Verdict::Clean) => return passed(MalwareStatus::Clean),
        Ok(Verdict::Skipped) => return passed(MalwareStatus::Skipped),
        Ok(Verdict::Infected(signature)) => {
            let detail = format!("The scanner found {signature:?}. The content was deleted.");
            let refusal = Some(Refusal::new("malware_found", detail));
            return Ok(MalwareScanDecision { status: MalwareStatus::Infected, refusal });
        }
        Err(ScanError::TooLarge) => "It is larger than the scanner accepts.",
        // Also the result for an upload that ended meanwhile; such an upload is not changed.
        Err(ScanError::NotFound) => "It was deleted. Upload it again.",
        Err(error) if ctx.attempt() < PROCESS_ATTEMPTS => {
            return Err(JobError::Retry(format!("no scan: {error:?}")));
        }
        Err(error) => {
            area_sdk::warn!(ctx, "upload refused without a scan: {error:?}");
            "The scanner was unavailable. Upload it again later."
        }
    };
    let detail = format!("The content could not be scanned for malware. {why}");
    let refusal = Some(Refusal::new("malware_scan_failed", detail));
    Ok(MalwareScanDecision { status: MalwareStatus::Pending, refusal })
}

fn validate(ctx: &JobCtx, mut upload: Stored<Upload>, received: &str) -> JobResult<CheckUploadJob> {
    match content(ctx, &upload, received) {
        Ok(content) => {
            if content.blob != received {
                upload.discard(ctx);
            }
            upload.received = None;
            upload.blob = Some(content.blob);
            upload.content_sha256 = Some(content.sha256);
            upload.content_bytes = Some(content.bytes);
            upload.format = Some(content.format);
            upload.validation_stage = Stage::Ready;
            upload.ready_at = Some(ctx.now());
            ctx.publish(UploadReady::of(&upload));
            ctx.documents().replace(&mut upload)?;
            Ok(Outcome::Done)
        }
        Err(ContentCheckError::Refused(refusal)) => reject(ctx, upload, refusal),
        Err(ContentCheckError::Blobs(error)) => Err(JobError::Retry(format!("blobs: {error:?}"))),
    }
}

/// Reason why the content was not accepted.
enum ContentCheckError {
    /// The content is invalid and is refused.
    Refused(Refusal),
    /// The blob store returned an error; the job is retried.
    Blobs(BlobError),
}

impl From<BlobError> for ContentCheckError {
    fn from(error: BlobError) -> Self {
        Self::Blobs(error)
    }
}

impl From<Refusal> for ContentCheckError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// The accepted content of an upload: its blob, digest, size and format.
struct AcceptedContent {
    blob: String,
    sha256: String,
    bytes: u64,
    format: Format,
}

fn content(
    ctx: &JobCtx,
    upload: &Stored<Upload>,
    received: &str,
) -> Result<AcceptedContent, ContentCheckError> {
    let sent = ctx.blobs().read_all(received, MAX_BYTES)?;
    let for_audit = upload.purpose == name(&Purpose::Audit);
    match unpack::unpack(sent)? {
        UnpackedContent::Whole { content, was_packed, filename } => {
            let filename = filename.as_deref().unwrap_or(&upload.filename);
            let format = format::recognize(filename, &content, for_audit)?;
            let blob =
                if was_packed { format!("content/{}", upload.id) } else { received.to_owned() };
            let info = if was_packed {
                ctx.blobs().write(&blob, &content)?
            } else {
                ctx.blobs().stat(received)?.ok_or(BlobError::NotFound)?
            };
            Ok(AcceptedContent { blob, sha256: info.sha256, bytes: info.size, format })
        }
        UnpackedContent::Large(sent) => {
            let LargeContentMetadata { format, sha256, bytes } =
                large::recognize(&sent, for_audit)?;
            Ok(AcceptedContent { blob: received.to_owned(), sha256, bytes, format })
        }
    }
}

fn reject(ctx: &JobCtx, mut upload: Stored<Upload>, refusal: Refusal) -> JobResult<CheckUploadJob> {
    ctx.publish(UploadRejected::of(&upload, &refusal));
    upload.reject(ctx, refusal);
    ctx.documents().replace(&mut upload)?;
    Ok(Outcome::Done)
}
