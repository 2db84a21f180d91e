//! Cleans text from uploaded files and evidence before it is stored.

use area_sdk::text::truncate_bytes;

/// Replaces control characters of a text by spaces (PostgreSQL cannot store U+0000), trims the text
/// and limits its size in bytes.
pub(crate) fn clean(text: &str, most_bytes: usize) -> String {
    let keep = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { ' ' } else { c };
    let clipped = truncate_bytes(text.trim(), most_bytes);
    clipped.chars().map(keep).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters_and_has_no_controls() {
        assert_eq!(clean(" a\0b\u{7}\n ", 100), "a b");
        assert_eq!(clean("żółw", 3), "ż");
    }
}
