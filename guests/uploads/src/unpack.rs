//! Unpacking what was sent, within bounds: gzip, or a zip with one file.

use std::io::Read;

use flate2::bufread::{DeflateDecoder, MultiGzDecoder};
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder};

use crate::MAX_BYTES;
use crate::upload::Refusal;

/// More than so many times its size no honest content unpacks to. Small
/// content may: a few bytes of nothing but blanks are no bomb.
const MAX_RATIO: u64 = 200;
const RATIO_COUNTS_FROM: u64 = 1 << 20;

/// Entries looked through in a zip.
const MAX_ENTRIES: usize = 1_000;

/// What was sent, without its packing.
pub(crate) struct Unpacked {
    pub(crate) content: Vec<u8>,
    pub(crate) was_packed: bool,
    /// The name within a zip.
    pub(crate) filename: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zip,
    /// One that is not taken.
    Other(&'static str),
}

/// Tells a packing by its first bytes.
fn packing(content: &[u8]) -> Packing {
    const MAGIC: [(&[u8], Packing); 8] = [
        (&[0x1f, 0x8b], Packing::Gzip),
        (b"PK\x03\x04", Packing::Zip),
        (b"PK\x05\x06", Packing::Zip),
        (&[0x28, 0xb5, 0x2f, 0xfd], Packing::Other("zstd")),
        (b"BZh", Packing::Other("bzip2")),
        (b"\xfd7zXZ\0", Packing::Other("xz")),
        (b"7z\xbc\xaf\x27\x1c", Packing::Other("7z")),
        (b"Rar!\x1a\x07", Packing::Other("rar")),
    ];
    let known = MAGIC.into_iter().find(|(magic, _)| content.starts_with(magic));
    known.map_or(Packing::None, |(_, packing)| packing)
}

/// What was sent, unpacked.
pub(crate) fn unpack(sent: Vec<u8>) -> Result<Unpacked, Refusal> {
    let unpacked = match packing(&sent) {
        Packing::None => Unpacked { content: sent, was_packed: false, filename: None },
        Packing::Gzip => {
            let content = read(MultiGzDecoder::new(sent.as_slice()), sent.len())?;
            Unpacked { content, was_packed: true, filename: None }
        }
        Packing::Zip => unzip(&sent)?,
        Packing::Other(kind) => {
            return Err(unsupported(&format!(
                "It is packed as {kind}. Send it plain, as gzip, or as a zip with one file."
            )));
        }
    };
    if unpacked.was_packed && packing(&unpacked.content) != Packing::None {
        return Err(unsupported("An archive lies within the archive. Pack it once."));
    }
    if is_tar(&unpacked.content) {
        let what = "It is a tar archive. Send the one file in it, plain or as gzip.";
        return Err(unsupported(what));
    }
    Ok(unpacked)
}

/// Reads packed content to the end, or to the limit.
fn read(source: impl Read, sent: usize) -> Result<Vec<u8>, Refusal> {
    let mut content = Vec::new();
    let read = source.take(MAX_BYTES + 1).read_to_end(&mut content);
    read.map_err(|error| broken(&error.to_string()))?;
    let bytes = content.len() as u64;
    if bytes > MAX_BYTES {
        return Err(refusal(
            "content_too_large",
            format!("Unpacked it has more than {MAX_BYTES} bytes. Split it into several uploads."),
        ));
    }
    if bytes >= RATIO_COUNTS_FROM && bytes > (sent as u64).saturating_mul(MAX_RATIO) {
        return Err(refusal(
            "compression_ratio_too_high",
            format!("It unpacks to more than {MAX_RATIO} times its size. Send it plain."),
        ));
    }
    Ok(content)
}

/// A file in a zip.
struct Entry {
    name: String,
    method: CompressionMethod,
    place: ZipArchiveEntryWayfinder,
}

fn unzip(sent: &[u8]) -> Result<Unpacked, Refusal> {
    let archive = ZipArchive::from_slice(sent).map_err(|error| broken(&error.to_string()))?;
    let mut files = Vec::new();
    let mut entries = archive.entries();
    while let Some(entry) = entries.next_entry().map_err(|error| broken(&error.to_string()))? {
        let name = String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned();
        if !entry.is_dir() && !is_clutter(&name) {
            if entry.flags().is_encrypted() {
                return Err(unsupported("The zip is locked with a password. Pack it without."));
            }
            let method = entry.compression_method();
            files.push(Entry { name, method, place: entry.wayfinder() });
        }
        if files.len() > MAX_ENTRIES {
            break;
        }
    }
    if files.is_empty() {
        return Err(refusal("empty_archive", "The zip has no file in it. Pack one.".to_owned()));
    }
    let Ok([Entry { name, method, place }]) = <[Entry; 1]>::try_from(files) else {
        return Err(refusal(
            "several_files",
            "The zip has more than one file. Send each as an upload of its own.".into(),
        ));
    };
    let file = archive.get_entry(place).map_err(|error| broken(&error.to_string()))?;
    let content = match method {
        CompressionMethod::STORE => read(file.verifying_reader(file.data()), sent.len())?,
        CompressionMethod::DEFLATE => {
            read(file.verifying_reader(DeflateDecoder::new(file.data())), sent.len())?
        }
        _ => return Err(unsupported("The zip is not packed with deflate. Pack it so.")),
    };
    Ok(Unpacked { content, was_packed: true, filename: Some(name) })
}

/// What desktop systems add to archives.
fn is_clutter(name: &str) -> bool {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    name.starts_with("__MACOSX/") || matches!(file, ".DS_Store" | "Thumbs.db" | "desktop.ini")
}

fn is_tar(content: &[u8]) -> bool {
    content.get(257..262).is_some_and(|magic| magic == b"ustar")
}

fn broken(why: &str) -> Refusal {
    refusal("content_damaged", format!("It cannot be unpacked: {why}. Pack and send it again."))
}

fn unsupported(detail: &str) -> Refusal {
    refusal("unsupported_archive", detail.to_owned())
}

fn refusal(code: &str, detail: String) -> Refusal {
    Refusal { code: code.to_owned(), detail }
}
