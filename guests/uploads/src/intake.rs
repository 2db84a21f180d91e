//! Operations that receive content: announce an upload, send the content to a signed URL, complete
//! the upload.

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{Blob, JobOptions, LinkClaims};
use area_shared::catalog::Repository;

use crate::process::CheckUploadJob;
use crate::upload::{MalwareStatus, Stage, Upload, UploadView};
use crate::{MAX_BYTES, expire};

/// Id of the operation that a signed upload URL calls.
pub(crate) const PUT_CONTENT: &str = "put_upload_content";

/// Time after the announcement in which the content can be sent and completed, in seconds.
const OPEN_SECONDS: i64 = 3_600;

/// Maximum size of a `branch_ref`, in bytes; audits limit theirs in the same way.
const MAX_BRANCH_BYTES: usize = 255;

/// Text for the OpenAPI document about announcing an upload.
pub(crate) const DESCRIPTION: &str = "\
Answers with `upload_url` and `upload_headers`: PUT the content there, with no session, within an \
hour, then complete the upload. At most 26,214,400 bytes are sent. Unpacked, CycloneDX, SPDX and \
OSV have at most 268,435,456 bytes, SARIF 67,108,864, and all else 26,214,400. From \
1,048,576 bytes on, content has at most 200 times the bytes that are sent. Audits read no \
CODEOWNERS file of more than 3,145,728 bytes, 20,000 rules or 1,000 sections. Content with the \
purpose `audit` must be SARIF 2.1.0, CycloneDX, SPDX or OSV as JSON, a CODEOWNERS file, or a \
list of paths, one a line, as `git ls-files` writes it; with the purpose `evidence` it may be \
anything. A file whose name has `codeowners` in it is a CODEOWNERS file; under another name, rules are told by most of \
them having owners.";

/// Purpose of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    /// Audits of the upload's repository import the content.
    Audit,
    /// Audits import the content only if an evidence record references it by its digest.
    Evidence,
}

/// A request to announce an upload.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewUpload {
    /// Filename. A path in the name determines the location of a CODEOWNERS file.
    #[schemars(length(min = 1, max = 255))]
    filename: String,
    /// Media type of the content.
    #[schemars(
        length(max = 127),
        regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*/[A-Za-z0-9!#$&^_.+-]+( *; *[!-~]+)*$")
    )]
    content_type: String,
    /// Size of the content as sent, in bytes.
    #[schemars(range(min = 1, max = 26_214_400_u64))]
    compressed_bytes: u64,
    /// Lower-case hex SHA-256 of the content as sent. If given, the content must have this digest.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    content_sha256: Option<String>,
    /// Id of the repository to which the content belongs. It cannot be added later. Without it, an
    /// audit reads the content only if an evidence record about its repository names the digest.
    repository_id: Option<Uuid>,
    /// Branch to which the content belongs, at most 255 bytes; if absent, the content belongs to
    /// all branches.
    #[schemars(length(min = 1, max = 255))]
    branch_ref: Option<String>,
    /// Full id of the commit to which the content belongs.
    #[schemars(regex(pattern = "^([0-9a-f]{40}|[0-9a-f]{64})$"))]
    commit_sha: Option<String>,
    /// Purpose for which the content is uploaded.
    purpose: Purpose,
}

/// Data in a signed upload URL.
#[derive(Serialize, Deserialize)]
pub(crate) struct UploadLinkClaims {
    upload_id: Uuid,
}

/// Returns the signed URL to which the client sends an upload's content.
pub(crate) fn url(ctx: &Ctx, id: Uuid, expires_at: Timestamp) -> String {
    let signature = ctx.sign_link(PUT_CONTENT, &UploadLinkClaims { upload_id: id }, expires_at);
    format!("{}/v1/uploads/{id}/content?signature={signature}", ctx.base_url())
}

pub(crate) fn create(ctx: &Ctx, Body(new): Body<NewUpload>) -> Result<Created<UploadView>> {
    check(ctx, &new)?;
    let id = ctx.new_id();
    let upload = Upload {
        filename: new.filename,
        content_type: new.content_type,
        purpose: name(&new.purpose),
        repository_id: new.repository_id,
        branch_ref: new.branch_ref,
        commit_sha: new.commit_sha,
        compressed_bytes: new.compressed_bytes,
        sent_sha256: new.content_sha256,
        content_sha256: None,
        content_bytes: None,
        received: None,
        blob: None,
        format: None,
        validation_stage: Stage::AwaitingUpload,
        malware_status: MalwareStatus::Pending,
        refusal: None,
        uploaded_by: ctx.user(),
        expires_at: ctx.now().plus_seconds(OPEN_SECONDS),
        completed_at: None,
        ready_at: None,
    };
    ctx.documents().create(id, &upload)?;
    expire::enqueue(ctx, id, upload.expires_at);
    Ok(Created(UploadView::new(ctx, id, upload)))
}

fn check(ctx: &Ctx, new: &NewUpload) -> Result<()> {
    if new.filename.chars().any(char::is_control) {
        return Err(Problem::validation("/filename", "must not have control characters"));
    }
    let bytes = new.branch_ref.as_ref().map_or(0, String::len);
    if bytes > MAX_BRANCH_BYTES {
        let message = format!("has {bytes} bytes; at most {MAX_BRANCH_BYTES} are allowed");
        return Err(Problem::validation("/branch_ref", message));
    }
    let Some(repository) = new.repository_id else { return Ok(()) };
    match ctx.documents::<Repository>().find(repository)? {
        Some(_) => Ok(()),
        None => Err(Problem::validation("/repository_id", "is not a repository of this workspace")
            .hint("GET /v1/workspaces/{workspace_id}/repositories lists them.")),
    }
}

pub(crate) fn put_content(
    ctx: &Ctx,
    LinkClaims(claims): LinkClaims<UploadLinkClaims>,
    Path(id): Path<Uuid>,
    Blob(received): Blob,
) -> Result<UploadView> {
    if claims.upload_id != id {
        return Err(Problem::permission_denied("The link belongs to another upload."));
    }
    let mut upload = ctx.documents::<Upload>().get(id)?;
    if !upload.is_open(ctx.now()) {
        return Err(closed(&upload));
    }
    if received.size != upload.compressed_bytes {
        let detail = format!(
            "`compressed_bytes` announced {} bytes, but {} were received.",
            upload.compressed_bytes, received.size
        );
        return Err(Problem::unprocessable("length_mismatch", detail).hint(SEND_AGAIN));
    }
    if upload.sent_sha256.as_ref().is_some_and(|announced| *announced != received.sha256) {
        let detail = format!(
            "The content's SHA-256 is {}, which differs from the announced `content_sha256`.",
            received.sha256
        );
        return Err(Problem::unprocessable("digest_mismatch", detail).hint(SEND_AGAIN));
    }
    upload.discard(ctx);
    upload.received = Some(received.name);
    upload.validation_stage = Stage::Uploaded;
    ctx.documents().replace(&mut upload)?;
    Ok(UploadView::of(ctx, upload))
}

const SEND_AGAIN: &str =
    "Send the whole content again, or announce a new upload with its true length and digest.";

pub(crate) fn complete(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<UploadView> {
    let mut upload = ctx.documents::<Upload>().get(id)?;
    if upload.completed_at.is_some() {
        return Ok(UploadView::of(ctx, upload));
    }
    if !upload.is_open(ctx.now()) {
        return Err(closed(&upload));
    }
    let received = upload.received.clone().ok_or_else(|| {
        Problem::conflict("content_missing", "The content has not been sent yet.")
            .hint("PUT it to `upload_url` first.")
    })?;
    upload.completed_at = Some(ctx.now());
    ctx.documents().replace(&mut upload)?;
    let later = JobOptions { resource: Some(id), ..JobOptions::default() };
    ctx.enqueue_with(&CheckUploadJob::of(id, received), later);
    Ok(UploadView::of(ctx, upload))
}

fn closed(upload: &Upload) -> Problem {
    let why = if upload.completed_at.is_some() { "is completed" } else { "has expired" };
    Problem::conflict("upload_closed", format!("The upload {why} and accepts no content."))
        .hint("Announce a new upload.")
}

const _: () = assert!(
    MAX_BYTES == 26_214_400
        && artifact_formats::MAX_WHOLE_BYTES == 26_214_400
        && artifact_formats::MAX_STREAM_BYTES == 268_435_456
        && artifact_formats::MAX_SARIF_BYTES == 67_108_864,
    "the schema and the description say so"
);
