//! Strict JSON parser (RFC 8259). Duplicate members, lone surrogates and U+0000 are refused with a
//! pointer to their position. Whole numbers are integers in any notation, as JSON Schema (2020-12,
//! section 4.2.3) defines: `3.0` is read as `3`.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

use assurance_core::domain::area::Violation;

/// A JSON text that the strict parser has accepted.
#[derive(Debug)]
pub(crate) struct ParsedJson {
    pub(crate) value: Json,
    /// False if the text has an integer in a notation such as `3.0`, which many readers do not
    /// accept as an integer.
    pub(crate) as_written: bool,
}

/// Parses one JSON text.
///
/// # Errors
/// Names the error and, if known, its position.
pub(crate) fn parse(text: &str) -> Result<ParsedJson, Violation> {
    let mut notes = ParseFindings::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = StrictVisitor(&mut notes).deserialize(&mut reader).and_then(|value| {
        reader.end()?;
        Ok(value)
    });
    match read {
        Ok(value) => Ok(ParsedJson { value, as_written: !notes.rewritten }),
        Err(error) => Err(notes.into_violation(&error)),
    }
}

/// Findings of the parser. After an error, path segments are collected from the inside out, so that
/// a valid body needs no bookkeeping.
#[derive(Default)]
struct ParseFindings {
    message: Option<String>,
    segments: Vec<String>,
    rewritten: bool,
}

impl ParseFindings {
    fn into_violation(self, error: &serde_json::Error) -> Violation {
        let mut pointer = String::new();
        for segment in self.segments.iter().rev() {
            pointer.push('/');
            pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
        }
        let message = self.message.unwrap_or_else(|| format!("is not valid JSON: {error}"));
        Violation { pointer, message }
    }
}

/// Returns the integer value of a number, if every JSON reader reads the same integer (RFC 8259,
/// section 6).
fn integer(value: f64) -> Option<i64> {
    const MOST: f64 = 9_007_199_254_740_991.0;
    (value.fract() == 0.0 && value.abs() <= MOST).then_some(value as i64)
}

struct StrictVisitor<'f>(&'f mut ParseFindings);

impl<'de> DeserializeSeed<'de> for StrictVisitor<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl StrictVisitor<'_> {
    fn refuse<T, E: serde::de::Error>(self, message: &str) -> Result<T, E> {
        self.0.message = Some(message.to_owned());
        Err(E::custom(message))
    }
}

impl<'de> Visitor<'de> for StrictVisitor<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json, E> {
        if let Some(integer) = integer(value) {
            self.0.rewritten = true;
            return self.visit_i64(integer);
        }
        match Number::from_f64(value) {
            Some(number) => Ok(Json::Number(number)),
            None => self.refuse("is a number out of range"),
        }
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Json, E> {
        if value.contains('\0') {
            return self.refuse("must not contain U+0000");
        }
        Ok(Json::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        loop {
            match items.next_element_seed(StrictVisitor(&mut *self.0)) {
                Ok(Some(item)) => list.push(item),
                Ok(None) => return Ok(Json::Array(list)),
                Err(error) => {
                    self.0.segments.push(list.len().to_string());
                    return Err(error);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if name.contains('\0') {
                return self.refuse("has a member name that contains U+0000");
            }
            if object.contains_key(&name) {
                self.0.message = Some("is given more than once".to_owned());
                self.0.segments.push(name);
                return Err(A::Error::custom("duplicate member"));
            }
            match members.next_value_seed(StrictVisitor(&mut *self.0)) {
                Ok(value) => object.insert(name, value),
                Err(error) => {
                    self.0.segments.push(name);
                    return Err(error);
                }
            };
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: &str) {
        let found = match parse(text) {
            Ok(parsed) => format!("ok {} {}", parsed.value, parsed.as_written),
            Err(violation) => format!("{}: {}", violation.pointer, violation.message),
        };
        assert!(found.starts_with(expect), "{text:?}: {found}");
    }

    #[test]
    fn loopholes_are_closed_and_pointed_at() {
        check(r#"{"a": {"b/c": 1, "b/c": 2}}"#, "/a/b~1c: is given more than once");
        check(r#"{"a": 1, "\u0061": 2}"#, "/a: is given more than once");
        check(r#"{"a": ["x", "y\u0000"]}"#, "/a/1: must not contain U+0000");
        check(r#"{"a\u0000": 1}"#, ": has a member name that contains U+0000");
        check(r#"{"a": "\ud800"}"#, "/a: is not valid JSON: ");
        check(r#"{"a": 1e400}"#, "/a: is not valid JSON: number out of range");
        check(r#"{"a": 1} x"#, ": is not valid JSON: trailing characters");
        check("", ": is not valid JSON: EOF");
        check(&"[".repeat(200), "/0/0/0");
    }

    #[test]
    fn ordinary_values_are_read_as_they_are() {
        let text = r#"{"a":[1,-2,3.5,true,null,"x\"é😀"],"b":{}}"#;
        assert_eq!(parse(text).unwrap().value, serde_json::from_str::<Json>(text).unwrap());
    }

    #[test]
    fn whole_numbers_are_integers_however_they_are_written() {
        check(r#"{"a": [3.0, 1e2, -0.0, 12]}"#, r#"ok {"a":[3,100,0,12]} false"#);
        check(r#"{"a": 0.95, "b": 7}"#, r#"ok {"a":0.95,"b":7} true"#);
        check("9007199254740993.0", "ok 9007199254740992.0 true");
    }

    fn has_loophole(text: &str) -> bool {
        text.contains("\\u0000") || text.contains('\0')
    }

    proptest! {
        #[test]
        fn strict_and_ordinary_reading_agree_on_what_is_json(
            text in r#"[\[\]{}:,"a-c0-2 .eE+\\u-]{0,24}"#
        ) {
            let ordinary = serde_json::from_str::<Json>(&text);
            match parse(&text) {
                Ok(parsed) if parsed.as_written => {
                    prop_assert_eq!(parsed.value, ordinary.unwrap());
                }
                Ok(parsed) => {
                    let again = serde_json_canonicalizer::to_string(&ordinary.unwrap());
                    let value = serde_json_canonicalizer::to_string(&parsed.value);
                    prop_assert_eq!(value.unwrap(), again.unwrap());
                }
                Err(violation) if violation.message.contains("more than once") => {
                    prop_assert!(ordinary.is_ok() || !text.is_empty());
                }
                Err(violation) => {
                    prop_assert!(ordinary.is_err() || has_loophole(&text), "{:?}", violation);
                }
            }
        }

        #[test]
        fn what_serde_writes_is_read_back(names in proptest::collection::hash_set("[a-z/~]{1,5}", 0..6), number: i64) {
            let object: Map<String, Json> =
                names.into_iter().map(|name| (name, Json::from(number))).collect();
            let value = Json::Object(object);
            prop_assert_eq!(parse(&value.to_string()).unwrap().value, value);
        }
    }
}
