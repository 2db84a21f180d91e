//! Parses JSON documents of other tools. Errors contain a JSON Pointer.

pub(crate) mod list;

use std::fmt;

use artifact_formats::MAX_STREAM_BYTES;
use artifact_formats::nesting::MAX_SBOM_DEPTH;
use artifact_formats::stream::{self, StreamError, StreamLimits};
use serde::de::{Deserialize, Deserializer};
use serde_path_to_error::{Path, Segment};

use crate::text::bounded;

/// Maximum size of the pointer, and of the message, of an [`ImportFailure`], in bytes. Both contain
/// texts of the document.
const MAX_BYTES: usize = 1_000;

/// Reason why a document was not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImportFailure {
    /// JSON Pointer (RFC 6901) to the invalid value in the document; empty for the document itself.
    pub(crate) pointer: String,
    /// Description of the error and how to fix it.
    pub(crate) message: String,
}

impl ImportFailure {
    pub(crate) fn at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        let [pointer, message] =
            [pointer.into(), message.into()].map(|text: String| bounded(&text, MAX_BYTES));
        Self { pointer, message }
    }

    /// Prefixes the pointer with the position of the parsed part in the document.
    pub(crate) fn within(mut self, pointer: &str) -> Self {
        self.pointer.insert_str(0, pointer);
        self
    }
}

impl fmt::Display for ImportFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.message),
            pointer => write!(f, "{pointer}: {}", self.message),
        }
    }
}

/// Returns the text of a UTF-8 file without its byte order mark.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, ImportFailure> {
    let text = std::str::from_utf8(bytes).map_err(|_| ImportFailure::at("", "Is not UTF-8."))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// A JSON document to parse: as text in memory, or compressed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UnparsedDocument<'a> {
    /// The text of the document.
    Text(&'a str),
    /// A document that is too large for memory, compressed as it was sent. Size, nesting and
    /// encoding were checked before.
    Packed(&'a [u8]),
}

impl<'a> UnparsedDocument<'a> {
    /// Parses the document. If that fails, parses it again to find the position of the error.
    pub(crate) fn json<T: Deserialize<'a>>(self) -> Result<T, ImportFailure> {
        match self {
            Self::Text(text) => json(text),
            Self::Packed(packed) => packed_json(packed),
        }
    }
}

/// Limits of the unpacked content of a compressed document.
pub(crate) const STREAM: StreamLimits =
    StreamLimits { bytes: MAX_STREAM_BYTES, depth: Some(MAX_SBOM_DEPTH), is_text: true };

fn packed_json<'a, T: Deserialize<'a>>(packed: &[u8]) -> Result<T, ImportFailure> {
    let wrong = |breach: StreamError| ImportFailure::at("", breach.to_string());
    list::begin(list::LARGE_BUDGET);
    let read = stream::parse(
        packed,
        STREAM,
        |_| {},
        |reader| {
            let mut deserializer = serde_json::Deserializer::from_reader(reader);
            let read = T::deserialize(&mut deserializer).ok()?;
            deserializer.end().ok().map(|()| read)
        },
    );
    if let Some(read) = read.map_err(wrong)?.result {
        return Ok(read);
    }
    list::begin(list::LARGE_BUDGET);
    let explained = stream::parse(
        packed,
        STREAM,
        |_| {},
        |reader| explain::<T, _>(&mut serde_json::Deserializer::from_reader(reader)),
    );
    Err(explained.map_or_else(wrong, |explained| explained.result))
}

/// Parses a JSON text. If that fails, parses it again to find the position of the error.
pub(crate) fn json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ImportFailure> {
    list::begin(list::BUDGET);
    serde_json::from_str(text).map_err(|_| {
        list::begin(list::BUDGET);
        explain::<T, _>(&mut serde_json::Deserializer::from_str(text))
    })
}

fn explain<'a, T, R>(deserializer: &mut serde_json::Deserializer<R>) -> ImportFailure
where
    T: Deserialize<'a>,
    R: serde_json::de::Read<'a>,
{
    match serde_path_to_error::deserialize::<_, T>(&mut *deserializer) {
        Err(error) => {
            let pointer = pointer(error.path());
            ImportFailure::at(pointer, format!("{}.", error.into_inner()))
        }
        Ok(_) => match deserializer.end() {
            Err(error) => ImportFailure::at("", format!("{error}.")),
            Ok(()) => ImportFailure::at("", "This cannot be parsed."),
        },
    }
}

fn pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Segment::Unknown => {}
        }
    }
    pointer
}

/// Deserializes a JSON value, and null as the default value of its type.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        assert_eq!(text(b"\xef\xbb\xbf{}"), Ok("{}"));
        assert_eq!(text(b"\xff").map_err(|mistake| mistake.message), Err("Is not UTF-8.".into()));
    }
}
