//! Truncates texts, and writes the names of enum variants.

use std::fmt;

use serde::Serialize;

/// Returns the first `most` characters (Unicode scalar values), or the whole text if it is shorter.
#[must_use]
pub fn truncate_chars(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

/// Returns the longest prefix with at most `most` bytes of UTF-8.
#[must_use]
pub fn truncate_bytes(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Returns the first `most` characters, followed by `…` if the text is longer.
#[must_use]
pub fn ellipsize(text: &str, most: usize) -> String {
    let shown = truncate_chars(text, most);
    if shown.len() < text.len() { format!("{shown}…") } else { text.to_owned() }
}

/// Returns the first line that is not blank, without surrounding whitespace; empty if there is
/// none.
#[must_use]
pub fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Returns the name under which serde writes a unit variant of an enum. Stored documents have this
/// text, so queries compare with it.
///
/// # Panics
/// If serde writes the value as a sequence or an object.
#[must_use]
pub fn name(value: &impl Serialize) -> String {
    struct VariantName<'a, T>(&'a T);

    impl<T: Serialize> fmt::Display for VariantName<'_, T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.serialize(f)
        }
    }

    VariantName(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_has_the_name_that_serde_writes() {
        #[derive(Serialize)]
        #[serde(rename_all = "snake_case")]
        enum ExampleStage {
            InReview,
            #[serde(rename = "24h")]
            Day,
        }

        assert_eq!(
            [ExampleStage::InReview, ExampleStage::Day].map(|stage| name(&stage)),
            ["in_review", "24h"]
        );
    }

    #[test]
    fn texts_end_between_characters() {
        assert_eq!(truncate_chars("żółw", 2), "żó");
        assert_eq!(truncate_chars("żółw", 4), "żółw");
        assert_eq!(truncate_bytes("żółw", 3), "ż");
        assert_eq!(truncate_bytes("żółw", 4), "żó");
        assert_eq!(truncate_bytes("żółw", 100), "żółw");
    }

    #[test]
    fn only_what_is_missing_is_marked() {
        assert_eq!(ellipsize("żółw", 3), "żół…");
        assert_eq!(ellipsize("żółw", 4), "żółw");
    }

    #[test]
    fn blank_lines_are_skipped() {
        assert_eq!(first_line("\n  \n one \n two"), "one");
        assert_eq!(first_line(" \n"), "");
    }
}
