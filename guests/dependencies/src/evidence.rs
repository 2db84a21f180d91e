//! Imports evidence records: those of kind `deployment`, and those of kind `advisory` with content
//! in the OSV format. A record may arrive before or after the upload of its content.

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobError, JobOptions};
use area_shared::evidence::{EvidenceConsumer, EvidenceRecord};
use area_shared::uploads::{Upload, UploadReady};

use crate::advisories::{file, mentions};
use crate::artifacts::{self, StoredFileSummary};
use crate::deployments::take;

/// Maximum size of the content that an evidence record of kind `deployment` references, in bytes.
const MAX_DEPLOYMENT_BYTES: usize = 1 << 20;

/// Consumer of evidence records of the kinds `deployment` and `advisory`.
pub(crate) struct DependencyEvidenceConsumer;

impl EvidenceConsumer for DependencyEvidenceConsumer {
    const JOB: &'static str = "import_evidence";
    const RECORD_KINDS: &'static [&'static str] = &["deployment", "advisory"];
    const STEP: u32 = 50;

    fn import(ctx: &JobCtx, records: Vec<Stored<EvidenceRecord>>) -> Result<(), JobError> {
        records.iter().try_for_each(|record| import_record(ctx, record))
    }
}

/// Job that imports the advisories in an uploaded OSV file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OsvImportJob {
    blob: String,
    content_sha256: String,
    offset: usize,
    artifact: Option<StoredFileSummary>,
}

job!(OsvImportJob, "import_advisories");

/// Handles [`ENVELOPE_ACCEPTED`](area_shared::evidence::ENVELOPE_ACCEPTED): enqueues the import of
/// the evidence records in the accepted envelope.
pub(crate) fn accepted(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    mentions::ensure(ctx)?;
    DependencyEvidenceConsumer::accepted(ctx, event)
}

/// Handles [`UploadReady`]: enqueues the import of an uploaded OSV file, and of the evidence
/// records that reference the uploaded content.
pub(crate) fn ready(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let ready: UploadReady = event.data()?;
    mentions::ensure(ctx)?;
    if let (Some("osv"), Some(id)) = (ready.format.as_deref(), ready.upload_id) {
        import_file(ctx, id)?;
    }
    DependencyEvidenceConsumer::ready(ctx, event)
}

fn import_file(ctx: &JobCtx, upload_id: Uuid) -> Result<(), JobError> {
    let upload = ctx.documents::<Upload>().find(upload_id)?.map(|upload| upload.value);
    if let Some(Upload { blob: Some(blob), content_sha256: Some(sha256), .. }) = upload {
        enqueue(ctx, blob, sha256, upload_id);
    }
    Ok(())
}

/// Enqueues the import of an OSV file. `resource` is the id of the upload or evidence record; the
/// queue shows it with the job.
fn enqueue(ctx: &JobCtx, blob: String, content_sha256: String, resource: Uuid) {
    let dedupe_key = Some(content_sha256.clone());
    let later = JobOptions { at: None, resource: Some(resource), dedupe_key };
    ctx.enqueue_with(&OsvImportJob { blob, content_sha256, offset: 0, artifact: None }, later);
}

/// Imports the next records of an OSV file, unless the file was imported before.
pub(crate) fn import_advisories(ctx: &JobCtx, mut job: OsvImportJob) -> JobResult<OsvImportJob> {
    let file = (job.blob.as_str(), job.content_sha256.as_str());
    let (artifact, next) = file::import_step(ctx, file, job.offset, job.artifact.take())?;
    Ok(match next {
        Some(offset) => Outcome::Continue(OsvImportJob { offset, artifact: Some(artifact), ..job }),
        None => Outcome::Done,
    })
}

fn import_record(ctx: &JobCtx, record: &EvidenceRecord) -> Result<(), JobError> {
    let blob = blob_of(ctx, &record.content_sha256)?;
    match (record.kind.as_str(), blob) {
        ("deployment", blob) => {
            let content = blob.map(|blob| artifacts::content(ctx, &blob, MAX_DEPLOYMENT_BYTES));
            let content = content.transpose()?.and_then(Result::ok);
            take::take(ctx, record, content.as_deref())
        }
        ("advisory", Some(blob)) => {
            enqueue(ctx, blob, record.content_sha256.clone(), record.evidence_id);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns the name of the blob of a ready upload with this SHA-256; `None` if there is none.
fn blob_of(ctx: &JobCtx, sha256: &str) -> Result<Option<String>, JobError> {
    let uploads = ctx.documents::<Upload>().query().equals("content_sha256", sha256);
    let upload = uploads.equals("validation_stage", "ready").first()?;
    Ok(upload.and_then(|upload| upload.value.blob))
}
