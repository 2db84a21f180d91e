//! Content that is too large to be stored unpacked. It is checked as a stream and stored as sent.

use std::fmt::Write as _;

use artifact_formats::packing::Packing;
use artifact_formats::stream::{self, StreamError, StreamLimits};
use artifact_formats::{MAX_SARIF_BYTES, MAX_STREAM_BYTES, MAX_WHOLE_BYTES};
use sha2::{Digest as _, Sha256};

use crate::format;
use crate::shape::JsonShape;
use crate::unpack::{self, MAX_RATIO};
use crate::upload::{Format, Refusal};

/// Maximum nesting of large content, as in the parsers of audits. The parser needs memory for each
/// level.
const MAX_DEPTH: usize = 128;

/// Number of first bytes that are checked for an archive within the archive.
const HEAD: usize = 512;

/// Error code of content above a size limit.
const TOO_LARGE: &str = "content_too_large";

/// Format, digest and size of large content after it was checked.
pub(crate) struct LargeContentMetadata {
    pub(crate) format: Format,
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
}

/// Checks large content and detects its format. For any purpose it must be JSON in a format that
/// audits import.
pub(crate) fn recognize(sent: &[u8], for_audit: bool) -> Result<LargeContentMetadata, Refusal> {
    let most = MAX_STREAM_BYTES.min((sent.len() as u64).saturating_mul(MAX_RATIO));
    let mut seen = StreamProperties::default();
    let limits = StreamLimits { bytes: most, depth: Some(MAX_DEPTH), is_text: for_audit };
    let observe = |piece: &[u8]| seen.read(piece);
    let read = stream::parse(sent, limits, observe, |json| serde_json::from_reader(json));
    let read = read.map_err(|breach| match breach {
        StreamError::TooDeep(_) if !for_audit => too_large(),
        breach => refused(breach),
    })?;
    seen.check(for_audit)?;
    let format = match format_of(read.result, read.depth, read.bytes) {
        Err(refusal) if for_audit || refusal.code == TOO_LARGE => return Err(refusal),
        Ok(Format::Unknown) if for_audit => return Err(unsupported()),
        Ok(Format::Unknown) | Err(_) => return Err(too_large()),
        Ok(format) => format,
    };
    Ok(LargeContentMetadata { format, sha256: seen.sha256(), bytes: read.bytes })
}

fn format_of(
    shape: serde_json::Result<JsonShape>,
    depth: usize,
    bytes: u64,
) -> Result<Format, Refusal> {
    let format = format::of_shape(shape, || depth)?;
    if format == Format::Sarif && bytes > MAX_SARIF_BYTES {
        let detail = format!(
            "It unpacks to {bytes} bytes; the maximum for SARIF is {MAX_SARIF_BYTES}. Split it, \
            with one category (automationDetails.id) for each part."
        );
        return Err(Refusal::new(TOO_LARGE, detail));
    }
    Ok(format)
}

/// Digest and first bytes of content that was read as a stream.
#[derive(Default)]
struct StreamProperties {
    digest: Sha256,
    head: Vec<u8>,
}

impl StreamProperties {
    fn read(&mut self, piece: &[u8]) {
        self.digest.update(piece);
        let room = HEAD.saturating_sub(self.head.len());
        self.head.extend(piece.iter().take(room));
    }

    fn check(&self, for_audit: bool) -> Result<(), Refusal> {
        if Packing::of(&self.head) != Packing::None {
            return Err(unpack::nested_archive());
        }
        unpack::check_tar(&self.head)?;
        if for_audit && !self.may_be_json() {
            return Err(unsupported());
        }
        Ok(())
    }

    /// Whether the first bytes after a byte order mark begin an object or array, or are white space
    /// only.
    fn may_be_json(&self) -> bool {
        let head = self.head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.head);
        matches!(head.trim_ascii_start().first(), None | Some(b'{' | b'['))
    }

    fn sha256(self) -> String {
        self.digest.finalize().iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

fn refused(breach: StreamError) -> Refusal {
    let code = match &breach {
        StreamError::TooLarge(MAX_STREAM_BYTES) => TOO_LARGE,
        StreamError::TooLarge(_) => return unpack::ratio_too_high(),
        StreamError::TooDeep(_) => "nested_too_deeply",
        StreamError::NotUtf8(_) => "not_utf8",
        StreamError::Packing(error) => error.code,
    };
    Refusal::new(code, breach.to_string())
}

fn unsupported() -> Refusal {
    Refusal::new("unsupported_format", must_be_known())
}

/// Returns the refusal of large content of no known format that is not for audits.
fn too_large() -> Refusal {
    Refusal::new(TOO_LARGE, must_be_known())
}

fn must_be_known() -> String {
    format!(
        "Unpacked it has more than {MAX_WHOLE_BYTES} bytes. So large a file must be SARIF 2.1.0, \
         CycloneDX, SPDX or OSV as JSON."
    )
}
