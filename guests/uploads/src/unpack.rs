//! Unpacks content, and limits its size and compression ratio.

use std::io::Read;

use artifact_formats::MAX_WHOLE_BYTES;
use artifact_formats::packing::{self, Packing, UnpackError};

use crate::MAX_BYTES;
use crate::upload::Refusal;

/// Maximum ratio of unpacked to sent bytes. It applies to unpacked content of at least 1 MiB.
pub(crate) const MAX_RATIO: u64 = 200;
const RATIO_COUNTS_FROM: u64 = 1 << 20;

/// Uploaded content after unpacking, or as sent if it is large.
pub(crate) enum UnpackedContent {
    /// The whole unpacked content; equal to the content as sent if that was not packed.
    Whole {
        content: Vec<u8>,
        was_packed: bool,
        /// Name of the file in the zip archive; `None` for other packings.
        filename: Option<String>,
    },
    /// The content as sent, because unpacked it exceeds [`MAX_WHOLE_BYTES`].
    Large(Vec<u8>),
}

/// Unpacks content as sent by the client. Refuses an archive within an archive, and tar archives.
pub(crate) fn unpack(sent: Vec<u8>) -> Result<UnpackedContent, Refusal> {
    if Packing::of(&sent) == Packing::None {
        check_tar(&sent)?;
        return Ok(UnpackedContent::Whole { content: sent, was_packed: false, filename: None });
    }
    let unpacked = packing::read(&sent, |content| read(content, sent.len()))?;
    let Some(content) = unpacked.result? else { return Ok(UnpackedContent::Large(sent)) };
    if Packing::of(&content) != Packing::None {
        return Err(nested_archive());
    }
    check_tar(&content)?;
    Ok(UnpackedContent::Whole { content, was_packed: true, filename: unpacked.filename })
}

impl From<UnpackError> for Refusal {
    fn from(error: UnpackError) -> Self {
        Refusal::new(error.code, error.detail)
    }
}

/// Reads unpacked content to its end; `None` if the content exceeds [`MAX_WHOLE_BYTES`].
fn read(source: impl Read, sent: usize) -> Result<Option<Vec<u8>>, Refusal> {
    let mut content = Vec::new();
    let read = source.take(MAX_WHOLE_BYTES + 1).read_to_end(&mut content);
    read.map_err(UnpackError::damaged)?;
    let bytes = content.len() as u64;
    if bytes >= RATIO_COUNTS_FROM && bytes > (sent as u64).saturating_mul(MAX_RATIO) {
        return Err(ratio_too_high());
    }
    Ok((bytes <= MAX_WHOLE_BYTES).then_some(content))
}

/// Returns the refusal of content with a suspicious compression ratio.
pub(crate) fn ratio_too_high() -> Refusal {
    Refusal::new(
        "compression_ratio_too_high",
        format!(
            "It unpacks to more than {MAX_RATIO} times its size. Pack it with a lower compression \
             level, send it unpacked if it has at most {MAX_BYTES} bytes, or split it."
        ),
    )
}

/// Returns the refusal of an archive within an archive.
pub(crate) fn nested_archive() -> Refusal {
    UnpackError::unsupported("The archive contains another archive. Pack it once.").into()
}

/// Refuses a tar archive by its first bytes.
pub(crate) fn check_tar(head: &[u8]) -> Result<(), Refusal> {
    if is_tar(head) {
        let detail = "It is a tar archive. Send the one file in it, plain or as gzip or zstd.";
        return Err(UnpackError::unsupported(detail).into());
    }
    Ok(())
}

fn is_tar(content: &[u8]) -> bool {
    content.get(257..262).is_some_and(|magic| magic == b"ustar")
}
