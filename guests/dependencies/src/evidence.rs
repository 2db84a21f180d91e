//! Evidence that means something here: records of kind `deployment`, and of
//! kind `advisory`, whose content is in the OSV format. A record may come
//! before the upload of its content, or after.

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobError, Later};

use crate::advisories::{file, mentions};
use crate::artifacts::{self, Artifact};
use crate::deployments::take;

/// How many records a step takes in.
const STEP: u32 = 50;
/// Largest content that tells of a deployment.
const MAX_DEPLOYMENT_BYTES: usize = 1 << 20;

/// What is needed of an evidence record.
#[derive(Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) evidence_id: Uuid,
    pub(crate) kind: String,
    pub(crate) provider: String,
    pub(crate) subject_key: String,
    pub(crate) source_ref: String,
    pub(crate) summary: String,
    pub(crate) content_sha256: String,
    pub(crate) confidence: f64,
    pub(crate) observed_at: Timestamp,
    pub(crate) producer_id: Uuid,
    pub(crate) source_kind: String,
    pub(crate) source_external_id: String,
    pub(crate) source_revision: String,
}

impl Document for Record {
    const COLLECTION: &'static str = "evidence.records";
}

/// What is needed of an upload.
#[derive(Serialize, Deserialize)]
struct Upload {
    #[serde(default)]
    blob: Option<String>,
    #[serde(default)]
    content_sha256: Option<String>,
}

impl Document for Upload {
    const COLLECTION: &'static str = "uploads.uploads";
}

/// Takes in the records of an envelope, or of a content that is there now.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImportEvidence {
    of: Source,
    cursor: Option<String>,
}

/// Which records.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    Envelope(Uuid),
    Content(String),
}

impl Job for ImportEvidence {
    const KIND: &'static str = "import_evidence";
}

/// Takes in a file of advisories.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImportAdvisories {
    blob: String,
    content_sha256: String,
    offset: usize,
    artifact: Option<Artifact>,
}

impl Job for ImportAdvisories {
    const KIND: &'static str = "import_advisories";
}

/// On `evidence_envelope.accepted`.
pub(crate) fn accepted(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    #[derive(Deserialize)]
    struct Accepted {
        envelope_id: Uuid,
        kinds: BTreeSet<String>,
    }
    let accepted: Accepted = event.data()?;
    mentions::ensure(ctx)?;
    if accepted.kinds.iter().any(|kind| is_ours(kind)) {
        let id = accepted.envelope_id;
        let later = Later { at: None, resource: Some(id), dedupe_key: Some(id.to_string()) };
        ctx.enqueue_with(&ImportEvidence { of: Source::Envelope(id), cursor: None }, later);
    }
    Ok(Outcome::Done)
}

fn is_ours(kind: &str) -> bool {
    matches!(kind, "deployment" | "advisory")
}

/// On `upload.ready`.
pub(crate) fn ready(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    #[derive(Deserialize)]
    struct Ready {
        upload_id: Uuid,
        format: Option<String>,
        content_sha256: Option<String>,
    }
    let ready: Ready = event.data()?;
    mentions::ensure(ctx)?;
    let Some(sha256) = ready.content_sha256 else { return Ok(Outcome::Done) };
    let later =
        Later { at: None, resource: Some(ready.upload_id), dedupe_key: Some(sha256.clone()) };
    if ready.format.as_deref() == Some("osv") {
        import_file(ctx, ready.upload_id, later.clone())?;
    }
    let records = ctx.documents::<Record>().query().equals("content_sha256", &sha256);
    if records.one_of("kind", ["deployment", "advisory"]).count()? > 0 {
        ctx.enqueue_with(&ImportEvidence { of: Source::Content(sha256), cursor: None }, later);
    }
    Ok(Outcome::Done)
}

fn import_file(ctx: &JobCtx, upload_id: Uuid, later: Later) -> Result<(), JobError> {
    let upload = ctx.documents::<Upload>().find(upload_id)?;
    let Some(Upload { blob: Some(blob), content_sha256: Some(content_sha256) }) =
        upload.map(|upload| upload.value)
    else {
        return Ok(());
    };
    ctx.enqueue_with(&ImportAdvisories { blob, content_sha256, offset: 0, artifact: None }, later);
    Ok(())
}

/// Takes in a file of advisories, unless it is known.
pub(crate) fn import_advisories(
    ctx: &JobCtx,
    job: ImportAdvisories,
) -> JobResult<ImportAdvisories> {
    let ImportAdvisories { blob, content_sha256, offset, artifact } = job;
    let mut artifact = match artifact {
        Some(artifact) => artifact,
        None if Artifact::known(ctx, &content_sha256)?.is_some() => return Ok(Outcome::Done),
        None => Artifact::new(Vec::new()),
    };
    match file::import_some(ctx, &blob, &content_sha256, offset, &mut artifact)? {
        Some(offset) => {
            let artifact = Some(artifact);
            Ok(Outcome::Continue(ImportAdvisories { blob, content_sha256, offset, artifact }))
        }
        None => {
            artifact.keep(ctx, &content_sha256)?;
            Ok(Outcome::Done)
        }
    }
}

/// Takes in records, some a step.
pub(crate) fn import(ctx: &JobCtx, job: ImportEvidence) -> JobResult<ImportEvidence> {
    let records = ctx.documents::<Record>().query();
    let records = match &job.of {
        Source::Envelope(id) => records.equals("envelope_id", *id),
        Source::Content(sha256) => records.equals("content_sha256", sha256),
    };
    let records = records.one_of("kind", ["deployment", "advisory"]).ascending("observed_at");
    let page = records.cursor(job.cursor).limit(STEP).page()?;
    for record in page.items {
        import_record(ctx, &record)?;
    }
    Ok(match page.next_cursor {
        None => Outcome::Done,
        cursor => Outcome::Continue(ImportEvidence { cursor, ..job }),
    })
}

fn import_record(ctx: &JobCtx, record: &Record) -> Result<(), JobError> {
    let blob = blob_of(ctx, &record.content_sha256)?;
    match (record.kind.as_str(), blob) {
        ("deployment", blob) => {
            let content = blob.map(|blob| artifacts::content(ctx, &blob, MAX_DEPLOYMENT_BYTES));
            let content = content.transpose()?.and_then(Result::ok);
            take::take(ctx, record, content.as_deref())
        }
        ("advisory", Some(blob)) => {
            let content_sha256 = record.content_sha256.clone();
            let later = Later {
                at: None,
                resource: Some(record.evidence_id),
                dedupe_key: Some(content_sha256.clone()),
            };
            let job = ImportAdvisories { blob, content_sha256, offset: 0, artifact: None };
            ctx.enqueue_with(&job, later);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The blob of a ready upload of this content.
fn blob_of(ctx: &JobCtx, sha256: &str) -> Result<Option<String>, JobError> {
    let uploads = ctx.documents::<Upload>().query().equals("content_sha256", sha256);
    let upload = uploads.equals("validation_stage", "ready").first()?;
    Ok(upload.and_then(|upload| upload.value.blob))
}
