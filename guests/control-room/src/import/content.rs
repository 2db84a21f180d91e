//! Reads the whole content of uploaded files.

use std::io::Read as _;

use area_sdk::JobCtx;
use area_sdk::wit::assurance::area::blobs;
use artifact_formats::MAX_SARIF_BYTES;
use artifact_formats::packing::{self, Packing, UnpackError};

/// Maximum size of an unpacked SARIF file in bytes, because the file is read into memory.
const MOST_BYTES: u64 = MAX_SARIF_BYTES;
/// Number of bytes of a file that are read with one call of the host.
const PIECE: u32 = 4 << 20;

/// Reason why the content of an uploaded file cannot be read.
pub(super) enum ContentReadError {
    /// The content is permanently unavailable: error code and description.
    ForGood(&'static str, String),
    /// The content is temporarily unavailable: description. The job is retried.
    Now(String),
}

/// Reads and unpacks the blob `name` of the area `uploads`, which has `bytes` bytes unpacked.
pub(super) fn read(ctx: &JobCtx, name: &str, bytes: u64) -> Result<Vec<u8>, ContentReadError> {
    if bytes > MOST_BYTES {
        let detail = format!(
            "The file has {bytes} bytes; the maximum is {MOST_BYTES}. Split it, with one category \
            (automationDetails.id) for each part."
        );
        return Err(ContentReadError::ForGood("file_too_large", detail));
    }
    let uploads = ctx.shared_blobs("uploads");
    let mut content = Vec::new();
    loop {
        let piece = uploads.read(name, content.len() as u64, PIECE).map_err(missing)?;
        if piece.is_empty() {
            return unpacked(content);
        }
        content.extend(piece);
    }
}

/// Returns the unpacked content of a file. The area `uploads` stores large files compressed, as
/// they were sent.
fn unpacked(content: Vec<u8>) -> Result<Vec<u8>, ContentReadError> {
    if Packing::of(&content) == Packing::None {
        return Ok(content);
    }
    let damaged = |error: UnpackError| ContentReadError::ForGood("content_damaged", error.detail);
    let read = packing::read(&content, |packed| {
        let mut whole = Vec::new();
        packed.take(MOST_BYTES).read_to_end(&mut whole).map(|_| whole)
    });
    read.map_err(damaged)?.result.map_err(|error| damaged(UnpackError::damaged(error)))
}

fn missing(error: blobs::Error) -> ContentReadError {
    match error {
        blobs::Error::NotFound => {
            let detail = "The uploaded content was deleted; upload the file again.";
            ContentReadError::ForGood("content_missing", detail.to_owned())
        }
        other => ContentReadError::Now(format!("blobs: {other:?}")),
    }
}
