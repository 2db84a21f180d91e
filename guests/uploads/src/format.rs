//! What content is, told by its outermost shape. Consumers look deeper.

use crate::shape::Shape;
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
    let shape: Shape = serde_json::from_str(text).map_err(|error| {
        refusal("malformed_json", format!("It begins like JSON and is none: {error}."))
    })?;
    match shape.unread_version() {
        Some(detail) => Err(refusal("unsupported_version", detail)),
        None => Ok(shape.format()),
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
    let taken = "SARIF 2.1.0, CycloneDX 1.2 to 1.7, SPDX 2.2 and 2.3, OSV (all as JSON), \
                 CODEOWNERS, and a list of paths, one a line";
    refusal("unsupported_format", format!("{what} Send one of: {taken}."))
}

fn refusal(code: &str, detail: String) -> Refusal {
    Refusal { code: code.to_owned(), detail }
}
