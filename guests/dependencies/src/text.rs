//! Texts that go into indexes: no longer than those take.

/// The beginning of a text: at most so many bytes, no U+0000.
pub(crate) fn bounded(text: &str, most_bytes: usize) -> String {
    if text.len() <= most_bytes && !text.contains('\0') {
        return text.to_owned();
    }
    let mut bounded = String::with_capacity(text.len().min(most_bytes));
    for c in text.chars().filter(|c| *c != '\0') {
        if bounded.len() + c.len_utf8() > most_bytes {
            break;
        }
        bounded.push(c);
    }
    bounded
}

/// `1 component`, `2 components`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The first of some texts, and how many more there are.
pub(crate) fn listed<'a>(
    texts: impl Iterator<Item = &'a str>,
    count: usize,
    most: usize,
) -> String {
    let listed = texts.take(most).collect::<Vec<_>>().join(", ");
    match count.saturating_sub(most) {
        0 => listed,
        more => format!("{listed}, and {more} more"),
    }
}

/// What two spellings of an advisory's id have in common.
pub(crate) fn advisory_key(id: &str) -> String {
    bounded(&id.trim().to_uppercase(), 160)
}

/// Whether a text is a commit's id: 40 or 64 hexadecimal digits.
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
        assert_eq!(advisory_key(" cve-2021-1 "), "CVE-2021-1");
        assert!(is_commit(&"a1".repeat(20)) && !is_commit("a1") && !is_commit(&"g".repeat(40)));
    }
}
