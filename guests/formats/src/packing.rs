//! Reads packed content as a stream: gzip (one or more members), Zstandard (one or more frames), or
//! a zip archive with one file.

use std::io::Read;

use flate2::bufread::{DeflateDecoder, MultiGzDecoder};
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive};

use crate::zstd;

/// Maximum number of entries read in a zip archive.
const MAX_ENTRIES: usize = 1_000;

/// Compression or archive format in which a client sent content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// The content is not packed.
    None,
    /// The content is packed with gzip (RFC 1952).
    Gzip,
    /// The content is packed with Zstandard (RFC 8878).
    Zstd,
    /// The content is a zip archive with one file.
    Zip,
    /// An unsupported format, with its name.
    Other(&'static str),
}

/// Reason why packed content cannot be unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpackError {
    /// Machine-readable code of the error: `content_damaged`, `unsupported_archive`, …
    pub code: &'static str,
    /// Description of the error and how to fix the content.
    pub detail: String,
}

impl UnpackError {
    fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }

    /// Returns the error for content that its decoder refuses.
    pub fn damaged(why: impl std::fmt::Display) -> Self {
        let detail = format!("It cannot be unpacked: {why}. Pack and send it again.");
        Self::new("content_damaged", detail)
    }

    /// Returns the error for an archive that is not supported.
    pub fn unsupported(detail: impl Into<String>) -> Self {
        Self::new("unsupported_archive", detail)
    }
}

/// Result of reading unpacked content with [`read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedUnpackedFile<T> {
    /// Value that the function passed to [`read`] returned.
    pub result: T,
    /// Name of the file in the zip archive; `None` for other packings.
    pub filename: Option<String>,
}

impl Packing {
    /// Detects how content is packed by its first bytes.
    pub fn of(content: &[u8]) -> Self {
        const MAGIC: [(&[u8], Packing); 8] = [
            (&[0x1f, 0x8b], Packing::Gzip),
            (b"PK\x03\x04", Packing::Zip),
            (b"PK\x05\x06", Packing::Zip),
            (&[0x28, 0xb5, 0x2f, 0xfd], Packing::Zstd),
            (b"BZh", Packing::Other("bzip2")),
            (b"\xfd7zXZ\0", Packing::Other("xz")),
            (b"7z\xbc\xaf\x27\x1c", Packing::Other("7z")),
            (b"Rar!\x1a\x07", Packing::Other("rar")),
        ];
        // A skippable frame may come first: 0x184D2A50 to 0x184D2A5F.
        if matches!(content, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) {
            return Self::Zstd;
        }
        let known = MAGIC.into_iter().find(|(magic, _)| content.starts_with(magic));
        known.map_or(Self::None, |(_, packing)| packing)
    }
}

/// Calls a function with the unpacked content as a stream. The function may stop early and must
/// limit what it stores. Content that is not packed is read unchanged.
pub fn read<T>(
    packed: &[u8],
    consume: impl FnOnce(&mut dyn Read) -> T,
) -> Result<ParsedUnpackedFile<T>, UnpackError> {
    let result = match Packing::of(packed) {
        Packing::None => consume(&mut &*packed),
        Packing::Gzip => consume(&mut MultiGzDecoder::new(packed)),
        Packing::Zstd => consume(&mut zstd::Decoder::new(packed)),
        Packing::Zip => return read_zip(packed, consume),
        Packing::Other(kind) => {
            return Err(UnpackError::unsupported(format!(
                "It is packed as {kind}. Send it plain, as gzip or zstd, or as a zip with one file."
            )));
        }
    };
    Ok(ParsedUnpackedFile { result, filename: None })
}

/// A file in a zip archive.
struct ZipEntry {
    name: String,
    method: CompressionMethod,
    place: ZipArchiveEntryWayfinder,
}

fn read_zip<T>(
    packed: &[u8],
    consume: impl FnOnce(&mut dyn Read) -> T,
) -> Result<ParsedUnpackedFile<T>, UnpackError> {
    let archive = ZipArchive::from_slice(packed).map_err(UnpackError::damaged)?;
    let ZipEntry { name, method, place } = only_file(&archive)?;
    let file = archive.get_entry(place).map_err(UnpackError::damaged)?;
    let result = match method {
        CompressionMethod::STORE => consume(&mut file.verifying_reader(file.data())),
        CompressionMethod::DEFLATE => {
            consume(&mut file.verifying_reader(DeflateDecoder::new(file.data())))
        }
        _ => {
            let detail = "The zip is not compressed with deflate. Create it with deflate.";
            return Err(UnpackError::unsupported(detail));
        }
    };
    Ok(ParsedUnpackedFile { result, filename: Some(name) })
}

fn only_file(archive: &ZipSliceArchive<&[u8]>) -> Result<ZipEntry, UnpackError> {
    let mut files = Vec::new();
    let mut entries = archive.entries();
    while let Some(entry) = entries.next_entry().map_err(UnpackError::damaged)? {
        let name = String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned();
        if !entry.is_dir() && !is_clutter(&name) {
            if entry.flags().is_encrypted() {
                let detail = "The zip is encrypted. Create it without a password.";
                return Err(UnpackError::unsupported(detail));
            }
            let method = entry.compression_method();
            files.push(ZipEntry { name, method, place: entry.wayfinder() });
        }
        if files.len() > MAX_ENTRIES {
            break;
        }
    }
    if files.is_empty() {
        return Err(UnpackError::new(
            "empty_archive",
            "The zip contains no file. Create it with one file.",
        ));
    }
    let [file] = <[ZipEntry; 1]>::try_from(files).map_err(|_| {
        let detail = "The zip has more than one file. Send each as a separate upload.";
        UnpackError::new("several_files", detail)
    })?;
    Ok(file)
}

/// Whether this is a file that desktop systems add to archives, such as `.DS_Store`.
fn is_clutter(name: &str) -> bool {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    name.starts_with("__MACOSX/") || matches!(file, ".DS_Store" | "Thumbs.db" | "desktop.ini")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn zstd(content: &[u8]) -> Vec<u8> {
        compress_to_vec(content, CompressionLevel::Fastest)
    }

    fn unpack(packed: &[u8]) -> Result<Vec<u8>, String> {
        let read = read(packed, |reader| {
            let mut content = Vec::new();
            reader.take(1 << 20).read_to_end(&mut content).map(|_| content)
        });
        let read = read.map_err(|error| error.detail)?;
        read.result.map_err(|error| error.to_string())
    }

    /// Returns a skippable Zstandard frame with this content.
    fn skippable(content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).expect("a length").to_le_bytes();
        [&[0x5a, 0x2a, 0x4d, 0x18], &length[..], content].concat()
    }

    #[test]
    fn zstd_in_several_frames_is_one_content() {
        let frames = [zstd(b"one "), skippable(b"not this"), zstd(b""), zstd(b"two")];
        assert_eq!(unpack(&frames.concat()).as_deref(), Ok(&b"one two"[..]));
        let first = [skippable(b""), zstd(b"one")].concat();
        assert_eq!(unpack(&first).as_deref(), Ok(&b"one"[..]));
    }

    #[test]
    fn damaged_zstd_is_an_error() {
        let content: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
        let packed = zstd(&content);
        assert_eq!(unpack(&packed), Ok(content));
        assert!(unpack(&packed[..packed.len() - 6]).is_err());
        assert!(unpack(&[&packed[..], b"more"].concat()).is_err());
        let mut altered = packed.clone();
        let checksum = altered.len() - 1;
        altered[checksum] ^= 1;
        assert!(unpack(&altered).is_err());
        assert!(unpack(&skippable(b"cut")[..9]).is_err());
    }

    #[test]
    fn a_zstd_frame_has_the_size_that_its_header_declares() {
        // A single segment with one raw block of five bytes.
        let declared =
            |size: u8| [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, size, 0x29, 0, 0], &b"hello"[..]].concat();
        assert_eq!(unpack(&declared(5)).as_deref(), Ok(&b"hello"[..]));
        for wrong in [0, 4, 6, 200] {
            assert!(unpack(&declared(wrong)).is_err(), "{wrong}");
        }
        assert!(unpack(&[declared(5), declared(200)].concat()).is_err());
    }

    #[test]
    fn a_window_that_takes_too_much_memory_is_refused() {
        // Frame header with a window of 2^31 bytes and without a content size.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 1, 0, 0];
        assert!(unpack(&frame).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_behind_a_magic_number_are_read_or_refused(
            kind in 0..3_usize, bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let magic: [&[u8]; 3] = [&[0x28, 0xb5, 0x2f, 0xfd], &[0x1f, 0x8b], b"PK\x03\x04"];
            let _ = unpack(&[magic[kind], &bytes].concat());
        }

        #[test]
        fn altered_zstd_is_read_or_refused(at in any::<prop::sample::Index>(), by in 1..=255_u8) {
            let mut packed = zstd(&b"a text that repeats, a text that repeats".repeat(20));
            let at = at.index(packed.len());
            packed[at] ^= by;
            let _ = unpack(&packed);
        }
    }
}
