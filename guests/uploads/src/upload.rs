//! An upload: as it is kept, as clients see it, and what is told of it.

use std::collections::BTreeMap;

use area_sdk::prelude::*;

use crate::intake;

/// What operation 20 says beside its schema.
pub(crate) const DESCRIPTION: &str = "\
`validation_stage` goes from `awaiting_upload` over `uploaded`, `scanning` and `validating` to \
`ready`, or ends in `rejected` or `expired`; then `validation_error_code` and \
`validation_error_detail` say what to mend. `malware_status` is `pending`, `clean`, `infected`, \
or `skipped` where the operator has no scanner. `upload_url` is there while content can be sent, \
for members and above; send `upload_headers` with it. What is sent may be plain, a gzip or zstd \
file (as the content itself, not as a Content-Encoding) or a zip with one file.";

/// Where an upload stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// Announced.
    AwaitingUpload,
    /// The content is here, and may still be sent again or be waiting for a
    /// place in the queue.
    Uploaded,
    /// Looked at for malware.
    Scanning,
    /// Unpacked, and looked at for what it is.
    Validating,
    /// Others may read it.
    Ready,
    /// Refused.
    Rejected,
    /// Not completed in time.
    Expired,
}

impl Stage {
    /// How far that is, of 100.
    fn progress(self) -> u8 {
        match self {
            Self::AwaitingUpload | Self::Expired => 0,
            Self::Uploaded => 20,
            Self::Scanning => 40,
            Self::Validating => 70,
            Self::Ready | Self::Rejected => 100,
        }
    }

    fn takes_content(self) -> bool {
        matches!(self, Self::AwaitingUpload | Self::Uploaded)
    }
}

/// What the malware scanner said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MalwareStatus {
    /// Nothing yet.
    Pending,
    /// Nothing found.
    Clean,
    /// Something found.
    Infected,
    /// There is no scanner.
    Skipped,
}

/// What content is, as far as its outermost shape shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// SARIF 2.1.0.
    Sarif,
    /// CycloneDX JSON.
    Cyclonedx,
    /// SPDX JSON.
    Spdx,
    /// OSV JSON: one advisory, an array of them, or `{"vulns": […]}`.
    Osv,
    /// CODEOWNERS.
    CodeOwners,
    /// One path a line.
    PathList,
    /// Anything else.
    Unknown,
}

/// Why content was refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    /// What to mend.
    pub(crate) detail: String,
}

/// An upload as it is kept.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Upload {
    pub(crate) filename: String,
    pub(crate) content_type: String,
    /// A [`Purpose`](intake::Purpose); earlier versions took any word.
    pub(crate) purpose: String,
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) branch_ref: Option<String>,
    pub(crate) commit_sha: Option<String>,
    /// Bytes as they are sent.
    pub(crate) compressed_bytes: u64,
    /// Digest of the bytes as they are sent, where it was announced.
    pub(crate) sent_sha256: Option<String>,
    /// Digest of the content, unpacked.
    pub(crate) content_sha256: Option<String>,
    /// Bytes of the content, unpacked.
    pub(crate) content_bytes: Option<u64>,
    /// The blob of what was sent, until it was looked at.
    pub(crate) received: Option<String>,
    /// The blob of the content: unpacked, or, if that is large, as it was sent.
    pub(crate) blob: Option<String>,
    pub(crate) format: Option<Format>,
    pub(crate) validation_stage: Stage,
    pub(crate) malware_status: MalwareStatus,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) uploaded_by: Uuid,
    /// Until then content can be sent and completed.
    pub(crate) expires_at: Timestamp,
    pub(crate) completed_at: Option<Timestamp>,
    pub(crate) ready_at: Option<Timestamp>,
}

impl Document for Upload {
    const COLLECTION: &'static str = "uploads";
}

impl Upload {
    /// Whether content can be sent.
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.validation_stage.takes_content()
            && self.completed_at.is_none()
            && now < self.expires_at
    }

    /// Whether the job is at it, or will be.
    pub(crate) fn is_under_way(&self) -> bool {
        self.completed_at.is_some()
            && matches!(
                self.validation_stage,
                Stage::Uploaded | Stage::Scanning | Stage::Validating
            )
    }

    /// Ends in a refusal; what was sent is thrown away.
    pub(crate) fn reject(&mut self, scope: &Scope, refusal: Refusal) {
        self.discard(scope);
        self.validation_stage = Stage::Rejected;
        self.refusal = Some(refusal);
    }

    /// Throws away what was sent.
    pub(crate) fn discard(&mut self, scope: &Scope) {
        let Some(received) = self.received.take() else { return };
        if let Err(error) = scope.blobs().delete(&received) {
            area_sdk::warn!(scope, "blob {received} stays: {error:?}");
        }
    }
}

/// An upload as the contract has it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UploadView {
    compressed_bytes: u64,
    content_type: String,
    expires_at: Timestamp,
    filename: String,
    id: Uuid,
    malware_status: MalwareStatus,
    upload_headers: BTreeMap<String, String>,
    upload_url: Option<String>,
    validation_error_code: Option<String>,
    validation_error_detail: Option<String>,
    validation_progress: u8,
    validation_stage: Stage,
    workspace_id: Uuid,
}

impl UploadView {
    /// As this caller may see it: who could not send content gets no URL.
    pub(crate) fn new(ctx: &Ctx, id: Uuid, upload: Upload) -> Self {
        let may_send = ctx.role() >= Role::Member && upload.is_open(ctx.now());
        let upload_url = may_send.then(|| intake::url(ctx, id, upload.expires_at));
        let headers =
            upload_url.iter().map(|_| ("Content-Type".to_owned(), upload.content_type.clone()));
        let upload_headers = headers.collect();
        let (validation_error_code, validation_error_detail) =
            upload.refusal.map(|refusal| (refusal.code, refusal.detail)).unzip();
        Self {
            compressed_bytes: upload.compressed_bytes,
            content_type: upload.content_type,
            expires_at: upload.expires_at,
            filename: upload.filename,
            id,
            malware_status: upload.malware_status,
            upload_headers,
            upload_url,
            validation_error_code,
            validation_error_detail,
            validation_progress: upload.validation_stage.progress(),
            validation_stage: upload.validation_stage,
            workspace_id: ctx.workspace_id(),
        }
    }

    pub(crate) fn of(ctx: &Ctx, upload: Stored<Upload>) -> Self {
        Self::new(ctx, upload.uuid(), upload.value)
    }
}

/// Told when content was accepted.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UploadReady {
    upload_id: Uuid,
    repository_id: Option<Uuid>,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    purpose: String,
    format: Option<Format>,
    content_sha256: Option<String>,
}

impl Event for UploadReady {
    const NAME: &'static str = "upload.ready";
}

impl UploadReady {
    pub(crate) fn of(upload: &Stored<Upload>) -> Self {
        Self {
            upload_id: upload.uuid(),
            repository_id: upload.repository_id,
            branch_ref: upload.branch_ref.clone(),
            commit_sha: upload.commit_sha.clone(),
            purpose: upload.purpose.clone(),
            format: upload.format,
            content_sha256: upload.content_sha256.clone(),
        }
    }
}

/// Told when content was refused.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UploadRejected {
    upload_id: Uuid,
    repository_id: Option<Uuid>,
    filename: String,
    purpose: String,
    code: String,
    detail: String,
}

impl Event for UploadRejected {
    const NAME: &'static str = "upload.rejected";
}

impl UploadRejected {
    pub(crate) fn of(upload: &Stored<Upload>, refusal: &Refusal) -> Self {
        Self {
            upload_id: upload.uuid(),
            repository_id: upload.repository_id,
            filename: upload.filename.clone(),
            purpose: upload.purpose.clone(),
            code: refusal.code.clone(),
            detail: refusal.detail.clone(),
        }
    }
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<UploadView> {
    Ok(UploadView::of(ctx, ctx.documents().get(id)?))
}

/// Which uploads.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    validation_stage: Option<Stage>,
    repository_id: Option<Uuid>,
    #[schemars(length(max = 40))]
    purpose: Option<String>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many a page has at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

fn default_limit() -> u32 {
    50
}

pub(crate) fn list(ctx: &Ctx, Params(params): Params<ListParams>) -> Result<Page<UploadView>> {
    let stage = params.validation_stage.map(name_of);
    let query = ctx
        .documents::<Upload>()
        .query()
        .equals_if("validation_stage", stage)
        .equals_if("repository_id", params.repository_id)
        .equals_if("purpose", params.purpose);
    let page = query.cursor(params.cursor).limit(params.limit).page()?;
    Ok(page.map(|upload| UploadView::of(ctx, upload)))
}

/// A stage as it is written.
fn name_of(stage: Stage) -> &'static str {
    match stage {
        Stage::AwaitingUpload => "awaiting_upload",
        Stage::Uploaded => "uploaded",
        Stage::Scanning => "scanning",
        Stage::Validating => "validating",
        Stage::Ready => "ready",
        Stage::Rejected => "rejected",
        Stage::Expired => "expired",
    }
}
