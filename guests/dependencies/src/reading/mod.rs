//! Reading other people's JSON: what is wrong is told by JSON Pointer.

pub(crate) mod list;

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_path_to_error::{Path, Segment};

/// What keeps a document from being taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// JSON Pointer (RFC 6901); empty for the document itself.
    pub(crate) pointer: String,
    /// What to mend, for a person.
    pub(crate) message: String,
}

impl Mistake {
    pub(crate) fn at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }

    /// The same, seen from further out.
    pub(crate) fn within(mut self, pointer: &str) -> Self {
        self.pointer.insert_str(0, pointer);
        self
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.message),
            pointer => write!(f, "{pointer}: {}", self.message),
        }
    }
}

/// Reads a document; only one that is wrong is read again, to tell where.
pub(crate) fn json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Mistake> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    list::begin();
    serde_json::from_slice(bytes).map_err(|_| explain::<T>(bytes))
}

fn explain<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Mistake {
    list::begin();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Err(error) => {
            let pointer = pointer(error.path());
            Mistake::at(pointer, format!("{}.", error.into_inner()))
        }
        Ok(_) => match deserializer.end() {
            Err(error) => Mistake::at("", format!("{error}.")),
            Ok(()) => Mistake::at("", "This cannot be read."),
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

/// Null as the default.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What a text of JSON says, where it says it in this shape.
pub(crate) fn perhaps<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

/// How deep the arrays and objects of a JSON text nest.
pub(crate) fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    for byte in bytes {
        if in_string {
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
