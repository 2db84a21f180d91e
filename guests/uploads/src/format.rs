//! Detects the format of content by its outermost structure. The areas that import the content
//! check its details.

use area_sdk::text::truncate_chars;
use artifact_formats::nesting::{self, MAX_SBOM_DEPTH};

use crate::lines;
use crate::shape::JsonShape;
use crate::upload::{Format, Refusal};

/// Number of first characters of content that are searched for signs of an unsupported format.
const HEAD: usize = 2_000;

/// Detects the format of uploaded content. Audits need a format that they import; other uploads may
/// have any.
pub(crate) fn recognize(
    filename: &str,
    content: &[u8],
    for_audit: bool,
) -> Result<Format, Refusal> {
    let format = match std::str::from_utf8(content) {
        // ASCII text in UTF-16 is valid UTF-8, with a zero byte next to each character.
        Ok(_) if content.iter().take(2).any(|byte| *byte == 0) => {
            Err(Refusal::new("not_utf8", "It is UTF-16. Save it as UTF-8 and upload it again."))
        }
        Ok(text) => of_text(filename, text.trim_start_matches('\u{feff}')),
        Err(error) => Err(Refusal::new(
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
        // Content for evidence may have any format.
        Err(_) if !for_audit => Ok(Format::Unknown),
        Err(refusal) => Err(refusal),
    }
}

fn of_text(filename: &str, text: &str) -> Result<Format, Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::new("content_empty", "It contains only white space."));
    }
    if is_owners_name(filename) {
        return Ok(Format::CodeOwners);
    }
    if !text.trim_start().starts_with(['{', '[']) {
        let is_foreign = foreign(text).is_some();
        return if is_foreign { Ok(Format::Unknown) } else { lines::recognize(filename, text) };
    }
    let parsed = parsed(text);
    if parsed.is_ok() {
        return parsed;
    }
    // A section in GitLab's dialect begins like a JSON array, and so do some paths.
    match lines::recognize(filename, text) {
        Ok(Format::CodeOwners) => Ok(Format::CodeOwners),
        recognised if lines::begins_with_path(text) => recognised,
        _ => parsed,
    }
}

fn parsed(text: &str) -> Result<Format, Refusal> {
    of_shape(serde_json::from_str(text), || nesting::depth(text.as_bytes()))
}

/// Returns the format of a JSON document with this outermost structure. Refuses versions and
/// nesting depths that audits do not support.
pub(crate) fn of_shape(
    shape: serde_json::Result<JsonShape>,
    depth: impl FnOnce() -> usize,
) -> Result<Format, Refusal> {
    let shape = shape.map_err(|error| {
        let detail = format!("It begins like JSON but is not valid JSON: {error}.");
        Refusal::new("malformed_json", detail)
    })?;
    match shape.unread_version() {
        Some(detail) => Err(Refusal::new("unsupported_version", detail)),
        None if is_sbom(shape.format()) && depth() > MAX_SBOM_DEPTH => {
            let detail = format!(
                "It nests deeper than {MAX_SBOM_DEPTH} levels of arrays and objects, which no \
                 audit reads. Flatten nested components into one list."
            );
            Err(Refusal::new("nested_too_deeply", detail))
        }
        None => Ok(shape.format()),
    }
}

fn is_sbom(format: Format) -> bool {
    matches!(format, Format::Cyclonedx | Format::Spdx)
}

/// Whether the filename contains `codeowners`, in any folder and any letter case.
fn is_owners_name(filename: &str) -> bool {
    let file = filename.rsplit(['/', '\\']).next().unwrap_or(filename);
    file.to_ascii_lowercase().contains("codeowners")
}

fn unsupported(content: &[u8]) -> Refusal {
    let text = String::from_utf8_lossy(content);
    let what = foreign(text.trim_start_matches('\u{feff}'))
        .unwrap_or("It has no format that audits read.");
    let taken = "SARIF 2.1.0, CycloneDX 1.2 to 1.7, SPDX 2.2 and 2.3, OSV (all as JSON), \
                 CODEOWNERS, and a list of paths, one a line";
    Refusal::new("unsupported_format", format!("{what} Send one of: {taken}."))
}

/// Returns a message that names a text format that audits do not import; `None` if no such format
/// is recognized.
fn foreign(text: &str) -> Option<&'static str> {
    let head = text.trim_start();
    let head = truncate_chars(head, HEAD);
    let said = |name: &str| {
        let mut lines = head.lines().map(|line| line.trim_start_matches(['"', '\'']));
        lines.any(|line| line.starts_with(name))
    };
    let first = head.strip_prefix('{').map(str::trim_start);
    let wraps = |name: &str| first.is_some_and(|member| member.starts_with(name));
    if wraps("\"sbom\"") {
        Some("It wraps an SBOM, as GitHub's API does; send the value of `sbom` (`jq .sbom`).")
    } else if wraps("\"Document\"") && head.contains("SPDX") {
        Some("It wraps an SPDX document; send the value of `Document` (`jq .Document`).")
    } else if head.contains("sarif-external-property-file") {
        Some("It is an external property file of SARIF; send one log that contains the results.")
    } else if head.starts_with('<') {
        Some("It looks like XML; of CycloneDX and SPDX only the JSON form is taken.")
    } else if said("SPDXVersion:") {
        Some("It is SPDX in tag-value form; only the JSON form is taken.")
    } else if said("spdxVersion:") {
        Some("It is SPDX as YAML; only the JSON form is taken.")
    } else if head.contains("spdx.org/rdf/3") {
        Some("It is SPDX 3; SPDX 2.2 and 2.3 are taken.")
    } else if head.contains("openvex.dev/ns") {
        Some("It is OpenVEX; of VEX documents only CycloneDX is read.")
    } else if head.contains("\"csaf_version\"") {
        Some("It is CSAF; of VEX documents only CycloneDX is read.")
    } else if head.starts_with("---") {
        Some("It looks like YAML, which no audit reads.")
    } else {
        None
    }
}
