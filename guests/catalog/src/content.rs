//! The content that evidence records speak of: a ready upload's, by its digest.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::{BlobError, JobError, Scope};

/// Largest content that is read.
const MOST_BYTES: u64 = 64 * 1024;

/// What is needed of an upload.
#[derive(Serialize, Deserialize)]
struct Upload {
    content_sha256: Option<String>,
    blob: Option<String>,
}

impl Document for Upload {
    const COLLECTION: &'static str = "uploads.uploads";
}

/// What is needed of `upload.ready`.
#[derive(Deserialize)]
pub(crate) struct UploadReady {
    pub(crate) content_sha256: Option<String>,
}

/// Content by digest, of as many as there are ready uploads for.
pub(crate) fn by_digest<'a>(
    scope: &Scope,
    digests: impl Iterator<Item = &'a str>,
) -> Result<BTreeMap<String, String>, JobError> {
    let ready = scope.documents::<Upload>().query().equals("validation_stage", "ready");
    let mut contents = BTreeMap::new();
    for upload in ready.one_of("content_sha256", digests).limit(1000).list()? {
        let Upload { content_sha256: Some(digest), blob: Some(blob) } = upload.value else {
            continue;
        };
        if contents.contains_key(&digest) {
            continue;
        }
        match scope.shared_blobs("uploads").read_all(&blob, MOST_BYTES) {
            Ok(content) => {
                contents.insert(digest, String::from_utf8_lossy(&content).into_owned());
            }
            Err(BlobError::Unavailable) => {
                return Err(JobError::Retry("the blob store is away".to_owned()));
            }
            // Gone, or too large to speak of one thing.
            Err(_) => {}
        }
    }
    Ok(contents)
}
