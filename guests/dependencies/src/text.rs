//! Functions for texts, including the maximum size of texts in indexes.

use std::borrow::Cow;

use area_sdk::text::truncate_bytes;

/// Truncates a text to `most_bytes` bytes of UTF-8 and removes U+0000, which documents cannot
/// store.
pub(crate) fn bounded(text: &str, most_bytes: usize) -> String {
    if text.contains('\0') {
        return bounded(&text.replace('\0', ""), most_bytes);
    }
    truncate_bytes(text, most_bytes).to_owned()
}

/// Removes the escapes of U+0000 from a JSON text, because documents cannot store that character.
pub(crate) fn without_nul(json: &str) -> Cow<'_, str> {
    if !json.contains(r"\u0000") {
        return Cow::Borrowed(json);
    }
    // An escaped backslash before `u0000` begins no escape.
    let parts = json.split(r"\\").map(|part| part.replace(r"\u0000", ""));
    Cow::Owned(parts.collect::<Vec<_>>().join(r"\\"))
}

/// Formats a count with its noun: `1 component`, `2 components`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Formats the first `most` texts, and the number of the others: "a, b, and 3 more".
pub(crate) fn listed<'a>(texts: impl ExactSizeIterator<Item = &'a String>, most: usize) -> String {
    let beyond = texts.len().saturating_sub(most);
    let listed = texts.take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
    match beyond {
        0 => listed,
        more => format!("{listed}, and {more} more"),
    }
}

/// Returns the key of an advisory id: in upper case and without surrounding white space.
pub(crate) fn advisory_key(id: &str) -> String {
    bounded(&id.trim().to_uppercase(), 160)
}

/// Returns the advisory id that has a key, as databases write it: in upper case, but for the ids of
/// GitHub (`GHSA-jfh8-c2jp-5v3q`).
pub(crate) fn advisory_id_of(key: &str) -> String {
    match key.strip_prefix("GHSA-") {
        Some(rest) => format!("GHSA-{}", rest.to_lowercase()),
        None => key.to_owned(),
    }
}

/// Whether a text is a commit id: 40 or 64 hexadecimal digits.
pub(crate) fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_between_characters() {
        assert_eq!(bounded("aé\0é", 4), "aé");
        assert_eq!(bounded("aé\0é", 5), "aéé");
        let json = r#"["a\u0000b\\u0000", "\\\u0000\n"]"#;
        assert_eq!(without_nul(json), r#"["ab\\u0000", "\\\n"]"#);
        assert_eq!(advisory_key(" cve-2021-1 "), "CVE-2021-1");
        assert_eq!(advisory_id_of("CVE-2021-1"), "CVE-2021-1");
        assert_eq!(advisory_id_of("GHSA-JFH8-C2JP-5V3Q"), "GHSA-jfh8-c2jp-5v3q");
        assert!(is_commit(&"a1".repeat(20)) && !is_commit("a1") && !is_commit(&"g".repeat(40)));
    }
}
