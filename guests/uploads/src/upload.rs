//! Uploads: stored form, responses and events.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::text::name;

use crate::intake;

/// Text for the OpenAPI document about operation 20, uploads.
pub(crate) const DESCRIPTION: &str = "\
`validation_stage` goes from `awaiting_upload` over `uploaded`, `scanning` and `validating` to \
`ready`, or ends in `rejected` or `expired`; then `validation_error_code` and \
`validation_error_detail` say what to fix. `malware_status` is `pending`, `clean`, `infected`, \
or `skipped` where the operator has no scanner. `upload_url` is there while content can be sent, \
for members and above; send `upload_headers` with it. What is sent may be plain, a gzip or zstd \
file (as the content itself, not as a Content-Encoding) or a zip with one file.";

/// Stage of an upload between its announcement and its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// The upload was announced; its content was not received.
    AwaitingUpload,
    /// The content was received. The client may send it again until it completes the upload; then a
    /// job checks it.
    Uploaded,
    /// The malware scan of the content is running.
    Scanning,
    /// The content is being unpacked and its format detected.
    Validating,
    /// The content was accepted; other areas may read it.
    Ready,
    /// The content was refused or could not be checked; see `validation_error_code`.
    Rejected,
    /// The client did not send and complete the content in time.
    Expired,
}

impl Stage {
    /// Returns the progress of the stage in percent, 0 to 100.
    fn progress(self) -> u8 {
        match self {
            Self::AwaitingUpload | Self::Expired => 0,
            Self::Uploaded => 20,
            Self::Scanning => 40,
            Self::Validating => 70,
            Self::Ready | Self::Rejected => 100,
        }
    }

    /// Whether the upload has ended.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Ready | Self::Rejected | Self::Expired)
    }

    fn takes_content(self) -> bool {
        matches!(self, Self::AwaitingUpload | Self::Uploaded)
    }
}

/// Result of the malware scan of an upload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MalwareStatus {
    /// The content has not been scanned, or the scan failed.
    Pending,
    /// The scanner found no malware.
    Clean,
    /// The scanner found malware.
    Infected,
    /// The content was not scanned, because the operator has no scanner.
    Skipped,
}

/// Format of an upload's content, detected by its outermost structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// The content is a SARIF 2.1.0 log.
    Sarif,
    /// The content is a CycloneDX SBOM in JSON.
    Cyclonedx,
    /// The content is an SPDX SBOM in JSON.
    Spdx,
    /// The content is OSV advisories in JSON: one advisory, an array of them, or `{"vulns": […]}`.
    Osv,
    /// The content is a CODEOWNERS file.
    CodeOwners,
    /// The content is a list of paths, one on each line.
    PathList,
    /// The content has any other format.
    Unknown,
}

/// Reason why the content of an upload was refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    /// Description of what is wrong with the content, and how to fix it.
    pub(crate) detail: String,
}

impl Refusal {
    pub(crate) fn new(code: &str, detail: impl Into<String>) -> Self {
        Self { code: code.to_owned(), detail: detail.into() }
    }
}

/// A stored upload.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Upload {
    pub(crate) filename: String,
    pub(crate) content_type: String,
    /// Value of [`Purpose`](intake::Purpose); documents of former versions may have any word.
    pub(crate) purpose: String,
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) branch_ref: Option<String>,
    pub(crate) commit_sha: Option<String>,
    /// Size of the content as sent, in bytes; announced by the client.
    pub(crate) compressed_bytes: u64,
    /// Lower-case hex SHA-256 of the content as sent; `None` if the client did not announce it.
    pub(crate) sent_sha256: Option<String>,
    /// Lower-case hex SHA-256 of the unpacked content; `None` before the content was accepted.
    pub(crate) content_sha256: Option<String>,
    /// Size of the unpacked content, in bytes; `None` before the content was accepted.
    pub(crate) content_bytes: Option<u64>,
    /// Name of the blob with the content as sent; `None` before it was received and after it was
    /// checked.
    pub(crate) received: Option<String>,
    /// Name of the blob with the accepted content: unpacked, or as sent if it is large.
    pub(crate) blob: Option<String>,
    pub(crate) format: Option<Format>,
    pub(crate) validation_stage: Stage,
    pub(crate) malware_status: MalwareStatus,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) uploaded_by: Uuid,
    /// Time until which the content can be sent and completed.
    pub(crate) expires_at: Timestamp,
    pub(crate) completed_at: Option<Timestamp>,
    pub(crate) ready_at: Option<Timestamp>,
}

document!(Upload, "uploads");

impl Upload {
    /// Whether the client may still send the content.
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.validation_stage.takes_content()
            && self.completed_at.is_none()
            && now < self.expires_at
    }

    /// Whether the job that checks the content is enqueued or running.
    pub(crate) fn is_under_way(&self) -> bool {
        self.completed_at.is_some()
            && matches!(
                self.validation_stage,
                Stage::Uploaded | Stage::Scanning | Stage::Validating
            )
    }

    /// Marks the upload as rejected and deletes its content. The caller stores the upload.
    pub(crate) fn reject(&mut self, scope: &Scope, refusal: Refusal) {
        self.discard(scope);
        self.validation_stage = Stage::Rejected;
        self.refusal = Some(refusal);
    }

    /// Deletes the blob with the upload's content as sent.
    pub(crate) fn discard(&mut self, scope: &Scope) {
        let Some(received) = self.received.take() else { return };
        if let Err(error) = scope.blobs().delete(&received) {
            area_sdk::warn!(scope, "blob {received} stays: {error:?}");
        }
    }
}

/// An upload: content that a client sends, and the state of its checks.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Upload")]
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
    /// Returns the upload for a response. `upload_url` is null for callers who may not send the
    /// content.
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

/// Published when the content of an upload was accepted.
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

event!(UploadReady, "upload.ready");

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

/// Published when the content of an upload was refused.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UploadRejected {
    upload_id: Uuid,
    repository_id: Option<Uuid>,
    filename: String,
    purpose: String,
    code: String,
    detail: String,
}

event!(UploadRejected, "upload.rejected");

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

/// Query parameters that filter the list of uploads.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    validation_stage: Option<Stage>,
    repository_id: Option<Uuid>,
    #[schemars(length(max = 40))]
    purpose: Option<String>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<UploadView>> {
    let stage = params.validation_stage.as_ref().map(name);
    let query = ctx
        .documents::<Upload>()
        .query()
        .equals_if("validation_stage", stage)
        .equals_if("repository_id", params.repository_id)
        .equals_if("purpose", params.purpose);
    let page = query.paging(paging).page()?;
    Ok(page.map(|upload| UploadView::of(ctx, upload)))
}
