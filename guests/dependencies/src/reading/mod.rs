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

/// A file's text, without its byte order mark.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Mistake> {
    let text = std::str::from_utf8(bytes).map_err(|_| Mistake::at("", "Is not UTF-8."))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Reads a document; only one that is wrong is read again, to tell where.
pub(crate) fn json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Mistake> {
    list::begin();
    serde_json::from_str(text).map_err(|_| explain::<T>(text))
}

fn explain<'a, T: Deserialize<'a>>(text: &'a str) -> Mistake {
    list::begin();
    let mut deserializer = serde_json::Deserializer::from_str(text);
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
pub(crate) fn depth(text: &[u8]) -> usize {
    let (mut at, mut depth, mut deepest) = (0, 0_usize, 0_usize);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => at += string_len(&text[at..]),
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

/// Bytes of a string behind its opening quotation mark, the closing one too.
fn string_len(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        // What is escaped ends nothing.
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_strings_does_not_nest() {
        for (text, deepest) in [
            ("", 0),
            ("1", 0),
            (r#"[{"a": []}]"#, 3),
            (r#"["[[", "\"[[", "\\", []]"#, 2),
            (r#"["[[\"#, 1),
            (r#"[]]]["#, 1),
        ] {
            assert_eq!(depth(text.as_bytes()), deepest, "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        assert_eq!(text(b"\xef\xbb\xbf{}"), Ok("{}"));
        assert_eq!(text(b"\xff").map_err(|mistake| mistake.message), Err("Is not UTF-8.".into()));
    }
}
