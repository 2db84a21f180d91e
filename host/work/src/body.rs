//! Validation of document bodies: a JSON object that both databases store and
//! read alike. It has no duplicate names, no U+0000 and no number with too many
//! decimal places (PostgreSQL cannot store them), and no lone surrogates. A
//! declared field has its declared type or is null, and is short enough for its
//! indexes.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Unexpected, Visitor};

use assurance_core::domain::manifest::FieldKind;
use assurance_store::AccessibleCollection;

/// Maximum bytes of text in one index entry of a document. PostgreSQL's limit
/// is a third of a page, which includes the workspace and the id.
const MAX_INDEXED_BYTES: usize = 1_600;

/// Maximum digits after the decimal point of a number that is written without
/// exponent. It is the limit of PostgreSQL's `numeric`, as which `jsonb` stores
/// numbers.
const MAX_DECIMAL_PLACES: i64 = 16_383;

/// Checks that both databases can store a document's body and its index
/// entries. The error is a message for the area's author.
pub(super) fn check_document(scope: &AccessibleCollection, body: &str) -> Result<(), String> {
    let lengths = parse(&scope.fields, body)?;
    if lengths.values().sum::<usize>() <= MAX_INDEXED_BYTES {
        return Ok(());
    }
    for index in &scope.indexes {
        let length: usize = index.fields.iter().filter_map(|field| lengths.get(&**field)).sum();
        if length > MAX_INDEXED_BYTES {
            return Err(format!(
                "the indexed fields {} hold {length} bytes; an index takes {MAX_INDEXED_BYTES}",
                index.fields.join(", ")
            ));
        }
    }
    Ok(())
}

/// Checks that the payload of an event or job is a JSON object that both
/// databases can store. The error is a message for the area's author.
pub(super) fn check_object(text: &str) -> Result<(), String> {
    parse(&BTreeMap::new(), text).map(drop)
}

/// Parses a document's body and returns the lengths of its declared text
/// fields, in bytes.
fn parse<'f>(
    fields: &'f BTreeMap<String, FieldKind>,
    text: &str,
) -> Result<BTreeMap<&'f str, usize>, String> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let lengths = deserializer.deserialize_map(DocumentBodyVisitor(fields));
    let lengths = lengths.map_err(|e| e.to_string())?;
    deserializer.end().map_err(|e| e.to_string())?;
    check_numbers(text)?;
    Ok(lengths)
}

/// Refuses numbers that PostgreSQL cannot store. `json` is valid JSON; its text
/// is read, because a visitor receives numbers rounded to 64 bits.
fn check_numbers(mut json: &str) -> Result<(), String> {
    let begins = |byte: u8| matches!(byte, b'"' | b'-' | b'0'..=b'9');
    while let Some(at) = json.bytes().position(begins) {
        let (token, rest) = json[at..].split_at(token_length(&json[at..]));
        if !token.starts_with('"') && !has_storable_scale(token) {
            return Err(format!(
                "the number {token:.40} has more than {MAX_DECIMAL_PLACES} decimal places, which \
                 cannot be stored"
            ));
        }
        json = rest;
    }
    Ok(())
}

/// Returns the length in bytes of the string or number at the beginning of a
/// JSON text.
fn token_length(json: &str) -> usize {
    let bytes = json.as_bytes();
    if bytes.first() != Some(&b'"') {
        let ends = |byte: &u8| !matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
        return bytes.iter().position(ends).unwrap_or(bytes.len());
    }
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns whether a JSON number has few enough decimal places. A larger number
/// than PostgreSQL's is out of the range of 64 bits, too, and refused before.
fn has_storable_scale(number: &str) -> bool {
    let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let places = digits.split_once('.').map_or(0, |(_, places)| places.len());
    // An exponent beyond 16 bits is refused for zero, too.
    let Ok(exponent) = exponent.parse::<i16>() else { return false };
    i64::try_from(places).is_ok_and(|places| places - i64::from(exponent) <= MAX_DECIMAL_PLACES)
}

struct DocumentBodyVisitor<'f>(&'f BTreeMap<String, FieldKind>);

impl<'de, 'f> Visitor<'de> for DocumentBodyVisitor<'f> {
    type Value = BTreeMap<&'f str, usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut seen, mut lengths) = (HashSet::new(), BTreeMap::new());
        while let Some(name) = next_name(&mut map, &mut seen)? {
            let declared = self.0.get_key_value(&*name);
            let kind = declared.map(|(_, kind)| *kind);
            let length = map.next_value_seed(ValueValidationSeed { name: &name, kind })?;
            if let (Some((name, _)), Some(length)) = (declared, length) {
                lengths.insert(&**name, length);
            }
        }
        Ok(lengths)
    }
}

/// Reads the name of a JSON object's next member and rejects duplicates.
fn next_name<'de, A: MapAccess<'de>>(
    map: &mut A,
    seen: &mut HashSet<Cow<'de, str>>,
) -> Result<Option<Cow<'de, str>>, A::Error> {
    let Some(JsonMemberName(name)) = map.next_key()? else { return Ok(None) };
    no_nul(&name)?;
    if !seen.insert(name.clone()) {
        return Err(de::Error::custom(format_args!("the member {name:?} appears twice")));
    }
    Ok(Some(name))
}

/// Name of a JSON object's member, borrowed if it contains no escapes.
#[derive(Deserialize)]
struct JsonMemberName<'a>(#[serde(borrow)] Cow<'a, str>);

fn no_nul<E: de::Error>(text: &str) -> Result<(), E> {
    if text.contains('\0') { Err(E::custom("U+0000 cannot be stored")) } else { Ok(()) }
}

/// Deserializes a value in a document that both databases can store. Returns
/// the length of a declared text field in bytes; `None` for other values.
#[derive(Clone, Copy)]
struct ValueValidationSeed<'f> {
    name: &'f str,
    /// Declared kind of the document's field; `None` if the field is not
    /// declared, or for values inside its value.
    kind: Option<FieldKind>,
}

impl ValueValidationSeed<'_> {
    /// Checks that a value fits its field's declared kind. `fits` is the kind
    /// of field that the value fits; `what` describes the value in the error.
    fn check<E: de::Error>(self, fits: Option<FieldKind>, what: &str) -> Result<Option<usize>, E> {
        match self.kind {
            Some(kind) if self.kind != fits => Err(E::custom(format_args!(
                "field {:?} is declared {kind:?} and holds {what}",
                self.name
            ))),
            _ => Ok(None),
        }
    }
}

impl<'de> DeserializeSeed<'de> for ValueValidationSeed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueValidationSeed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Some(kind) => write!(f, "{kind:?} or null in field {:?}", self.name),
            None => f.write_str("a JSON value"),
        }
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        self.check(Some(FieldKind::Boolean), "a boolean")
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
        self.check(Some(FieldKind::Integer), "an integer")
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => self.check(None, "an integer beyond 64 bits"),
        }
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        self.check(None, "a number that is not an integer")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        no_nul(text)?;
        self.check(Some(FieldKind::Text), "text")?;
        Ok(self.kind.map(|_| text.len()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        if self.kind.is_some() {
            return Err(de::Error::invalid_type(Unexpected::Seq, &self));
        }
        while list.next_element_seed(self)?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        if self.kind.is_some() {
            return Err(de::Error::invalid_type(Unexpected::Map, &self));
        }
        let mut seen = HashSet::new();
        while next_name(&mut map, &mut seen)?.is_some() {
            map.next_value_seed(self)?;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assurance_core::domain::manifest::IndexSpec;

    fn scope() -> AccessibleCollection {
        AccessibleCollection {
            full_name: "a.b".into(),
            fields: [
                ("text".to_owned(), FieldKind::Text),
                ("number".to_owned(), FieldKind::Integer),
                ("truth".to_owned(), FieldKind::Boolean),
            ]
            .into(),
            indexes: vec![IndexSpec { fields: vec!["text".into()], unique: false }],
            ..AccessibleCollection::default()
        }
    }

    #[test]
    fn takes_what_both_databases_keep() {
        for body in [
            "{}",
            r#"{"text":"é","number":-9223372036854775808,"truth":false,"x":[{"y":1.5}]}"#,
            r#"{"text":null,"number":null,"truth":null}"#,
            r#" {"a":{"a":{"a":null}}} "#,
            r#"{"x":[1e-16383,1E+300,-0.5e-3,"\"1e-20000"],"1e-20000":0.0}"#,
        ] {
            assert_eq!(check_document(&scope(), body), Ok(()), "{body}");
        }
    }

    #[test]
    fn refuses_what_one_of_them_would_not_keep_alike() {
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(2_000));
        for body in [
            "[]",
            "null",
            "{",
            "{} {}",
            r#"{"a":1,"a":2}"#,
            r#"{"b":{"a":1,"a":2}}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"a":"\u0000"}"#,
            r#"{"a":["\u0000"]}"#,
            r#"{"\u0000":1}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":1e999}"#,
            r#"{"a":1e-16384}"#,
            r#"{"a":["\\",-1.5E-16383]}"#,
            r#"{"a":0e-99999}"#,
            &format!(r#"{{"a":0.{}}}"#, "1".repeat(16_384)),
            r#"{"text":1}"#,
            r#"{"text":[]}"#,
            r#"{"number":1.0}"#,
            r#"{"number":9223372036854775808}"#,
            r#"{"number":"1"}"#,
            r#"{"truth":0}"#,
            &long,
        ] {
            assert!(check_document(&scope(), body).is_err(), "{body}");
        }
    }
}
