//! Replaces what differs between runs, and secrets.

use std::collections::BTreeMap;

use assurance_core::domain::time::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::envelope;

/// Shown instead of the moment of the recording: 2030-01-31T12:00:00Z. Other moments keep their
/// distance from it.
const RECORDED_AT: Timestamp = Timestamp(1_896_091_200_000_000);
/// Precision of moments in milliseconds, so that they do not depend on how fast the test was.
const PRECISION_MS: i64 = 300_000;
/// Age in milliseconds from which a moment is part of the test's input and is shown as it is.
const YEAR_MS: i64 = 365 * 86_400_000;
/// Shown instead of the service under test, and of the test's other servers.
const SERVICE: &str = "https://assurance.example.com";
const OTHER_SERVER: &str = "https://server.example.com";
/// Shown instead of this machine's address.
const ADDRESS: &str = "192.0.2.1";
/// First of the ids that are shown.
const FIRST_ID: u128 = 0x01890a5d_ac96_774b_bcce_b302099a8001;
/// Length from which a word that looks random is a secret or a digest.
const SECRET_CHARS: usize = 24;
/// Longest replacement of a secret: the length of a signature.
const MOST_LETTERS: usize = 88;
/// Number of list items that are shown: of objects and of other values.
const MOST_ITEMS: [usize; 2] = [1, 3];

/// State of one example: the same id is replaced by the same one.
#[derive(Debug)]
pub struct Neutral {
    base: String,
    recorded_at: Timestamp,
    ids: BTreeMap<Uuid, Uuid>,
}

impl Neutral {
    /// Prepares an example of the service with this base URL.
    #[must_use]
    pub fn new(base: &str) -> Self {
        Self { base: base.to_owned(), recorded_at: envelope::now(), ids: BTreeMap::new() }
    }

    /// Returns the value with short lists and neutral texts.
    pub fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::Array(items) => {
                let most = MOST_ITEMS[usize::from(!items.first().is_some_and(Value::is_object))];
                items.iter().take(most).map(|item| self.value(item)).collect()
            }
            Value::Object(members) => {
                let members = members.iter();
                members.map(|(name, value)| (name.clone(), self.value(value))).collect()
            }
            Value::String(text) => Value::String(self.text(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        if let Some(moment) = moment(text) {
            return self.moment(text, moment);
        }
        let text = without_ports(&text.replace(&self.base, SERVICE));
        // A slash is a letter of base64, unless it separates parts of a path.
        let slash = if text.contains("://") || text.starts_with('/') { '_' } else { '/' };
        let is_of_word = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '+', slash].contains(&c);
        let (mut neutral, mut rest) = (String::new(), text.as_str());
        while let Some(first) = rest.chars().next() {
            let length = rest.find(|c| is_of_word(c) != is_of_word(first)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(length);
            neutral.push_str(&self.word(word));
            rest = after;
        }
        neutral
    }

    fn moment(&self, text: &str, moment: Timestamp) -> String {
        let distance = moment.ms_since(self.recorded_at);
        if distance < -YEAR_MS {
            return text.to_owned();
        }
        let steps = (distance + PRECISION_MS / 2).div_euclid(PRECISION_MS);
        RECORDED_AT.plus_ms(steps * PRECISION_MS).to_rfc3339()
    }

    fn word(&mut self, word: &str) -> String {
        if let Some(id) = Uuid::try_parse(word).ok().filter(|_| word.len() == 36) {
            let next = Uuid::from_u128(FIRST_ID + self.ids.len() as u128);
            return self.ids.entry(id).or_insert(next).to_string();
        }
        if word.len() < SECRET_CHARS || !is_random(word) {
            return word.to_owned();
        }
        let prefix = word.split_once('_').map_or("", |(prefix, _)| prefix);
        let prefixed = !prefix.is_empty() && prefix.chars().all(|c| c.is_ascii_lowercase());
        let start = if prefixed { prefix.len() + 1 } else { 0 };
        let letter = if word.contains(|c: char| c.is_ascii_lowercase()) { "a" } else { "A" };
        format!("{}{}", &word[..start], letter.repeat((word.len() - start).min(MOST_LETTERS)))
    }
}

/// Whether a word has several digits, or one between letters of both cases.
fn is_random(word: &str) -> bool {
    let count = |is: fn(&char) -> bool| word.chars().filter(is).count();
    let cases = count(char::is_ascii_uppercase).min(count(char::is_ascii_lowercase));
    let digits = count(char::is_ascii_digit);
    digits >= 2 && digits < word.len() || digits == 1 && cases > 0
}

/// Returns the moment that a text has in RFC 3339 in UTC; `None` for other texts.
fn moment(text: &str) -> Option<Timestamp> {
    let text = text.ends_with('Z').then_some(text)?;
    serde_json::from_value(text.into()).ok()
}

/// Replaces the addresses of servers on this machine.
fn without_ports(text: &str) -> String {
    let mut parts = text.split("http://127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    let text = parts.fold(first, |all, part| {
        format!("{all}{OTHER_SERVER}{}", part.trim_start_matches(char::is_numeric))
    });
    text.replace("127.0.0.1", ADDRESS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_moments_addresses_and_secrets_are_replaced() {
        let id = Uuid::now_v7();
        let value = json!({
            "id": id, "url": format!("http://127.0.0.1:1/v1/{id}?signature=abcdefghij0123456789abcd"),
            "at": envelope::now(), "issuer": "http://127.0.0.1:23/keys", "day": "2026-11-25",
            "secret": "whsec_0123/56789+bcdefghij=", "words": ["a-long-word-with-one-digit-1", "b"],
            "items": [{ "n": 1 }, { "n": 2 }],
        });
        let shown = "01890a5d-ac96-774b-bcce-b302099a8001";
        let expected = json!({
            "id": shown,
            "url": format!("{SERVICE}/v1/{shown}?signature=aaaaaaaaaaaaaaaaaaaaaaaa"),
            "at": RECORDED_AT, "issuer": format!("{OTHER_SERVER}/keys"), "day": "2026-11-25",
            "secret": "whsec_aaaaaaaaaaaaaaaaaaaa=", "words": ["a-long-word-with-one-digit-1", "b"],
            "items": [{ "n": 1 }],
        });
        assert_eq!(Neutral::new("http://127.0.0.1:1").value(&value), expected);
    }

    #[test]
    fn moments_keep_their_distances_and_those_of_the_input_stay() {
        let now = envelope::now();
        let value = json!({
            "created_at": now.plus_ms(-2_000), "expires_at": now.plus_ms(3_600_000),
            "published": "2021-02-15T00:00:00Z", "zone": "Z",
        });
        let expected = json!({
            "created_at": RECORDED_AT, "expires_at": "2030-01-31T13:00:00.000000Z",
            "published": "2021-02-15T00:00:00Z", "zone": "Z",
        });
        assert_eq!(Neutral::new("http://127.0.0.1:1").value(&value), expected);
    }
}
