//! The content of uploads, whole.

use std::io::Read as _;

use area_sdk::JobCtx;
use area_sdk::wit::assurance::area::blobs;
use artifact_formats::MAX_SARIF_BYTES;
use artifact_formats::packing::{self, Packing, PackingError};

/// Largest file that is read: it is held in memory while it is.
const MOST_BYTES: u64 = MAX_SARIF_BYTES;
/// What is asked for at a time.
const PIECE: u32 = 4 << 20;

/// Why a file's content is not there.
pub(super) enum Missing {
    /// For good; why, for a person.
    ForGood(&'static str, String),
    /// For the moment.
    Now(String),
}

/// A file's bytes.
pub(super) fn read(ctx: &JobCtx, name: &str, bytes: u64) -> Result<Vec<u8>, Missing> {
    if bytes > MOST_BYTES {
        let detail = format!(
            "The file has {bytes} bytes and at most {MOST_BYTES} are read; split it, one category \
             (automationDetails.id) for each part."
        );
        return Err(Missing::ForGood("file_too_large", detail));
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

/// The content of a file; the uploads area keeps large ones as they were sent.
fn unpacked(content: Vec<u8>) -> Result<Vec<u8>, Missing> {
    if Packing::of(&content) == Packing::None {
        return Ok(content);
    }
    let damaged = |error: PackingError| Missing::ForGood("content_damaged", error.detail);
    let read = packing::read(&content, |packed| {
        let mut whole = Vec::new();
        packed.take(MOST_BYTES).read_to_end(&mut whole).map(|_| whole)
    });
    read.map_err(damaged)?.result.map_err(|error| damaged(PackingError::damaged(error)))
}

fn missing(error: blobs::Error) -> Missing {
    match error {
        blobs::Error::NotFound => {
            let detail = "The uploaded content is not there any more; upload the file again.";
            Missing::ForGood("content_missing", detail.to_owned())
        }
        other => Missing::Now(format!("blobs: {other:?}")),
    }
}
