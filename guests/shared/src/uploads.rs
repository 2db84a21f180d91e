//! Uploads of the area `uploads`, and their content.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::{BlobError, DocumentError, JobError};

use crate::counts::distinct;

/// Maximum size of contents that [`contents`] reads, in bytes.
const MAX_CONTENT_BYTES: u64 = 1 << 20;

/// An upload. It has a content once its `validation_stage` is `ready`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Upload {
    /// Filename of the upload from the client, with its path.
    pub filename: String,
    /// `audit` or `evidence`; documents of former versions may have any word.
    pub purpose: String,
    /// Repository to which the content belongs.
    pub repository_id: Option<Uuid>,
    /// Branch to which the content belongs, as sent by the client.
    pub branch_ref: Option<String>,
    /// Commit to which the content belongs, as sent by the client.
    pub commit_sha: Option<String>,
    /// Detected format of the content: `sarif`, `cyclonedx`, and so on.
    pub format: Option<String>,
    /// Lower-case hex SHA-256 of the unpacked content.
    pub content_sha256: Option<String>,
    /// Size of the unpacked content, in bytes.
    pub content_bytes: Option<u64>,
    /// Name of the blob in the area `uploads` with the content.
    pub blob: Option<String>,
    /// Time at which the content was accepted and became readable for other areas.
    pub ready_at: Option<Timestamp>,
}

document!(Upload, "uploads.uploads");

/// Data of the event `upload.ready`.
#[derive(Clone, Debug, Deserialize)]
pub struct UploadReady {
    /// Id of the accepted upload; `None` in events of former versions.
    pub upload_id: Option<Uuid>,
    /// Format of the content, as in [`Upload::format`].
    pub format: Option<String>,
    /// Digest of the content, as in [`Upload::content_sha256`].
    pub content_sha256: Option<String>,
}

impl UploadReady {
    /// Name of the event that this is the data of.
    pub const NAME: &'static str = "upload.ready";
}

/// Content of a ready upload, parsed or too large.
pub(crate) enum UploadParseResult<T> {
    /// The value that the parser made of the content.
    Parsed(T),
    /// The content exceeds 1 MiB and was not read.
    TooLarge,
}

/// Returns the parsed contents of ready uploads, by digest. A digest is absent if no ready upload
/// has it. One content at a time is in memory. Logs contents that are too large. The job is retried
/// while the blob store is unavailable.
pub(crate) fn contents<'a, T>(
    scope: &Scope,
    digests: impl Iterator<Item = &'a str>,
    parse: impl Fn(&str) -> T,
) -> Result<BTreeMap<String, UploadParseResult<T>>, JobError> {
    // Only a ready upload has a digest. A condition on the stage would make SQLite read all ready
    // uploads.
    let uploads = || scope.documents::<Upload>().query();
    let mut contents = BTreeMap::new();
    for digest in distinct(uploads().one_of("content_sha256", digests), "content_sha256")? {
        let Some(upload) = uploads().equals("content_sha256", &digest).first()? else { continue };
        if let Some(content) = content(scope, &upload, &parse)? {
            contents.insert(digest, content);
        }
    }
    Ok(contents)
}

/// Returns whether another upload had the same content ready before this one. Compares with the
/// newest 100 uploads of the content.
pub(crate) fn is_repeated(
    scope: &Scope,
    upload_id: Uuid,
    digest: &str,
) -> Result<bool, DocumentError> {
    let uploads = scope.documents::<Upload>();
    let Some(upload) = uploads.find(upload_id)? else { return Ok(false) };
    let same = uploads.query().equals("content_sha256", digest).limit(100).list()?;
    let order = |upload: &Stored<Upload>| (upload.ready_at, upload.id.clone());
    Ok(same.iter().any(|other| order(other) < order(&upload)))
}

/// Reads and parses the content of an upload; `None` if it was deleted.
fn content<T>(
    scope: &Scope,
    upload: &Stored<Upload>,
    parse: impl Fn(&str) -> T,
) -> Result<Option<UploadParseResult<T>>, JobError> {
    let Some(blob) = &upload.blob else { return Ok(None) };
    // Large content is stored packed: its blob can be small.
    let read = match upload.content_bytes {
        Some(bytes) if bytes > MAX_CONTENT_BYTES => Err(BlobError::LimitExceeded),
        _ => scope.shared_blobs("uploads").read_all(blob, MAX_CONTENT_BYTES),
    };
    match read {
        Ok(content) => {
            Ok(Some(UploadParseResult::Parsed(parse(&String::from_utf8_lossy(&content)))))
        }
        Err(BlobError::Unavailable) => {
            Err(JobError::Retry("the blob store is unavailable".to_owned()))
        }
        Err(BlobError::LimitExceeded) => {
            let id = &upload.id;
            area_sdk::warn!(
                scope,
                "upload {id} exceeds {MAX_CONTENT_BYTES} bytes; evidence that names it is not read"
            );
            Ok(Some(UploadParseResult::TooLarge))
        }
        Err(_) => Ok(None),
    }
}
