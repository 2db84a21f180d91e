//! Removes credentials from records and messages before they are sent to a model.

/// Text that replaces a credential.
const REDACTED: &str = "[redacted]";

/// Prefixes of well-known credentials, and the minimum length of such a credential in characters.
const CREDENTIALS: [(&str, usize); 22] = [
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 35),
    ("eyJ", 60),
    ("ghp_", 36),
    ("gho_", 36),
    ("ghs_", 36),
    ("ghu_", 36),
    ("github_pat_", 40),
    ("glpat-", 20),
    ("hf_", 30),
    ("npm_", 36),
    ("pypi-", 50),
    ("rk_live_", 24),
    ("sk_live_", 24),
    ("sk-", 24),
    ("shpat_", 32),
    ("SG.", 50),
    ("whsec_", 24),
    ("xoxb-", 24),
    ("xoxp-", 24),
    ("ya29.", 40),
];

const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "-----END ";

/// Whether a credential may contain this character.
fn inside(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '=')
}

fn is_credential(word: &str) -> bool {
    CREDENTIALS.iter().any(|(prefix, least)| word.len() >= *least && word.starts_with(prefix))
}

/// Replaces credentials in a text.
pub(crate) fn redact(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let text = without_private_keys(text);
    let mut rest = text.as_str();
    while let Some(begin) = rest.find(inside) {
        clean.push_str(&rest[..begin]);
        let word = &rest[begin..];
        let end = word.find(|c| !inside(c)).unwrap_or(word.len());
        clean.push_str(&redacted(&word[..end]));
        rest = &word[end..];
    }
    clean + rest
}

/// Replaces a credential in a word. The credential may follow `key=` or similar, or be a part of a
/// URL's authority or path.
fn redacted(word: &str) -> String {
    if is_credential(word) {
        return REDACTED.to_owned();
    }
    let part = |part| if is_credential(part) { REDACTED.to_owned() } else { by_segment(part) };
    word.split_inclusive('=').map(part).collect()
}

/// Replaces the segments of a path that are credentials.
fn by_segment(path: &str) -> String {
    let segment = |text| if is_credential(text) { REDACTED } else { text };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// Replaces PEM private keys in a text.
fn without_private_keys(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(KEY_BEGINS) {
        let (before, key) = rest.split_at(begin);
        clean.push_str(before);
        let head = key.lines().next().unwrap_or_default();
        if !head.contains("PRIVATE KEY") {
            clean.push_str(KEY_BEGINS);
            rest = &key[KEY_BEGINS.len()..];
            continue;
        }
        clean.push_str(REDACTED);
        let end = key.find(KEY_ENDS).map(|at| at + KEY_ENDS.len());
        let tail = end.map(|at| &key[at..]).unwrap_or_default();
        rest = tail.find("-----").map(|at| &tail[at + 5..]).unwrap_or_default();
    }
    clean + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn credentials_are_left_out_and_the_rest_stays() {
        let token = format!("ghp_{}", "a1".repeat(18));
        assert_eq!(redact(&format!("Found \"{token}\" in é.rs")), "Found \"[redacted]\" in é.rs");
        assert_eq!(redact(&format!("TOKEN={token}")), "TOKEN=[redacted]");
        let url = format!("https://{token}@github.com/acme, https://x.example/a/{token}/b?t=1");
        let clean = "https://[redacted]@github.com/acme, https://x.example/a/[redacted]/b?t=1";
        assert_eq!(redact(&url), clean);
        let key = "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b";
        assert_eq!(redact(key), "a [redacted] b");
        assert_eq!(redact("-----BEGIN PRIVATE KEY-----\nMIIE"), REDACTED);
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----";
        assert_eq!(redact(certificate), certificate);
        for kept in
            ["sk-short", "pkg:npm/left-pad@1.0.0", "CVE-2021-44228", "a=b=c", "/a//b/=/", ""]
        {
            assert_eq!(redact(kept), kept);
        }
    }

    proptest! {
        #[test]
        fn text_without_credentials_stays_as_it_is(text in "[ -,.0-9:-@G-Zf-r\\n é]{0,80}") {
            prop_assert_eq!(redact(&text), text);
        }

        #[test]
        fn nothing_makes_it_panic(text in "(-----BEGIN |-----END |PRIVATE KEY|-----|sk-|é|=|a|\\n){0,20}") {
            redact(&text);
        }
    }
}
