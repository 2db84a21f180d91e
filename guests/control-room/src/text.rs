//! Text from files that others wrote, made fit to be kept.

/// The text without control characters (PostgreSQL has no place for U+0000),
/// trimmed, at most so many bytes.
pub(crate) fn clean(text: &str, most_bytes: usize) -> String {
    let keep = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { ' ' } else { c };
    let clipped = clip(text.trim(), most_bytes);
    clipped.chars().map(keep).collect::<String>().trim().to_owned()
}

/// The longest beginning of at most so many bytes.
pub(crate) fn clip(text: &str, most_bytes: usize) -> &str {
    let mut end = text.len().min(most_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The first line that says something.
pub(crate) fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters_and_has_no_controls() {
        assert_eq!(clean(" a\0b\u{7}\n ", 100), "a b");
        assert_eq!(clean("żółw", 3), "ż");
        assert_eq!(clip("żółw", 4), "żó");
        assert_eq!(first_line("\n  \n one \n two"), "one");
        assert_eq!(first_line(""), "");
    }
}
