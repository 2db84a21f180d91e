//! What content is, told by its outermost shape. Consumers look deeper.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::upload::{Format, Refusal};

/// Longest path in a list of paths, in bytes.
const MAX_PATH: usize = 4_096;

/// Recognises content; an audit takes nothing that it cannot read.
pub(crate) fn recognise(
    filename: &str,
    content: &[u8],
    for_audit: bool,
) -> Result<Format, Refusal> {
    let format = match std::str::from_utf8(content) {
        Ok(text) => of_text(filename, text.trim_start_matches('\u{feff}')),
        Err(error) => Err(refusal(
            "not_utf8",
            format!(
                "Byte {} is not UTF-8. Save the file as UTF-8 and upload it again.",
                error.valid_up_to()
            ),
        )),
    };
    match format {
        Ok(Format::Unknown) if for_audit => Err(unsupported(content)),
        Ok(format) => Ok(format),
        // What is kept as evidence may be anything.
        Err(_) if !for_audit => Ok(Format::Unknown),
        Err(refusal) => Err(refusal),
    }
}

fn of_text(filename: &str, text: &str) -> Result<Format, Refusal> {
    if text.trim().is_empty() {
        return Err(refusal("content_empty", "There is nothing but blanks in it.".to_owned()));
    }
    if is_owners_name(filename) {
        return Ok(Format::CodeOwners);
    }
    if !text.trim_start().starts_with(['{', '[']) {
        return Ok(of_lines(filename, text));
    }
    // A section of GitLab's dialect begins like an array.
    match (parsed(text), of_lines(filename, text)) {
        (Err(_), Format::CodeOwners) => Ok(Format::CodeOwners),
        (parsed, _) => parsed,
    }
}

fn parsed(text: &str) -> Result<Format, Refusal> {
    let shape: Result<Shape, _> = serde_json::from_str(text);
    shape.map(|shape| shape.format()).map_err(|error| {
        refusal("malformed_json", format!("It begins like JSON and is none: {error}."))
    })
}

/// What of a JSON value tells what document it is; everything else is passed
/// over, so that a large document takes no memory.
enum Shape {
    Object(Members),
    /// True where all items are advisories, and there are some.
    Array(bool),
    Text(String),
    Other,
}

#[derive(Default)]
struct Members {
    bom_format: Option<String>,
    spdx_version: Option<String>,
    schema: Option<String>,
    id: Option<String>,
    runs: bool,
    version: bool,
    advisory: bool,
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "bomFormat" => members.bom_format = map.next_value::<Shape>()?.text(),
                "spdxVersion" => members.spdx_version = map.next_value::<Shape>()?.text(),
                "$schema" => members.schema = map.next_value::<Shape>()?.text(),
                "id" => members.id = map.next_value::<Shape>()?.text(),
                other => {
                    members.runs |= other == "runs";
                    members.version |= other == "version";
                    members.advisory |= matches!(other, "modified" | "affected" | "schema_version");
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Shape::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Shape, A::Error> {
        let (mut some, mut all) = (false, true);
        while let Some(item) = items.next_element::<Shape>()? {
            some = true;
            all &= matches!(item, Shape::Object(members) if members.is_advisory());
        }
        Ok(Shape::Array(some && all))
    }

    fn visit_str<E>(self, text: &str) -> Result<Shape, E> {
        Ok(Shape::Text(text.to_owned()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::Other)
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::Other)
    }
}

impl Shape {
    fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Object(_) | Self::Array(_) | Self::Other => None,
        }
    }

    fn format(&self) -> Format {
        match self {
            Self::Object(members) => members.format(),
            Self::Array(true) => Format::Osv,
            Self::Array(false) | Self::Text(_) | Self::Other => Format::Unknown,
        }
    }
}

impl Members {
    fn format(&self) -> Format {
        let is =
            |text: &Option<String>, holds: fn(&str) -> bool| text.as_deref().is_some_and(holds);
        if is(&self.bom_format, |text| text == "CycloneDX") {
            Format::Cyclonedx
        } else if is(&self.spdx_version, |text| text.starts_with("SPDX-")) {
            Format::Spdx
        } else if self.runs && self.version
            || is(&self.schema, |text| text.to_ascii_lowercase().contains("sarif"))
        {
            Format::Sarif
        } else if self.is_advisory() {
            Format::Osv
        } else {
            Format::Unknown
        }
    }

    fn is_advisory(&self) -> bool {
        self.advisory && self.id.as_ref().is_some_and(|id| !id.is_empty())
    }
}

/// `CODEOWNERS` wherever it lies, and copies of it that name where from.
fn is_owners_name(filename: &str) -> bool {
    let file = filename.rsplit(['/', '\\']).next().unwrap_or(filename);
    file.to_ascii_lowercase().contains("codeowners")
}

fn of_lines(filename: &str, text: &str) -> Format {
    let said = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let lines = text.lines().map(str::trim).filter(said);
    let owned = |line| str::split_whitespace(line).any(is_owner);
    if lines.clone().all(is_rule) && lines.clone().any(owned) {
        return Format::CodeOwners;
    }
    let paths = !is_markup(text) && !is_prose(filename) && lines.clone().all(is_path);
    if paths { Format::PathList } else { Format::Unknown }
}

/// One path: nothing that only stands in other texts. With blanks in it, it
/// has to show that it is one.
fn is_path(line: &str) -> bool {
    let odd = |c: char| c.is_control() || matches!(c, '<' | '>' | '|' | '"');
    let shows = line.contains('/') || !line.contains(char::is_whitespace);
    line.len() <= MAX_PATH && shows && !line.contains(odd) && !line.split_whitespace().any(is_owner)
}

fn is_owner(word: &str) -> bool {
    word.strip_prefix('@').unwrap_or(word).contains('@') || word.starts_with('@')
}

/// A pattern and its owners, or a section of GitLab's.
fn is_rule(line: &str) -> bool {
    line.starts_with(['[', '^']) || line.split_whitespace().skip(1).all(is_owner)
}

fn is_markup(text: &str) -> bool {
    text.starts_with('<') || text.starts_with("---") || text.starts_with("SPDXVersion:")
}

/// Names of files that hold sentences, each of which could be a path.
fn is_prose(filename: &str) -> bool {
    let extension = filename.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(
        extension.as_deref(),
        Some("md" | "rst" | "csv" | "tsv" | "yaml" | "yml" | "toml" | "xml" | "html" | "log")
    )
}

fn unsupported(content: &[u8]) -> Refusal {
    let head = String::from_utf8_lossy(content.get(..400).unwrap_or(content));
    let head = head.trim_start_matches('\u{feff}').trim_start();
    let what = if head.starts_with('<') {
        "It looks like XML; of CycloneDX and SPDX only the JSON form is taken."
    } else if head.starts_with("SPDXVersion:") {
        "It is SPDX in tag-value form; only the JSON form is taken."
    } else if head.contains("spdx.org/rdf/3") {
        "It is SPDX 3; SPDX 2.2 and 2.3 are taken."
    } else {
        "It is none of the formats that audits read."
    };
    let taken = "SARIF 2.1.0, CycloneDX, SPDX 2.2 and 2.3, OSV (all as JSON), CODEOWNERS, and a \
                 list of paths, one a line";
    refusal("unsupported_format", format!("{what} Send one of: {taken}."))
}

fn refusal(code: &str, detail: String) -> Refusal {
    Refusal { code: code.to_owned(), detail }
}
