//! Bytes that are signed: RFC 8785 canonical JSON in a DSSE pre-authentication encoding.

use serde_json::{Map, Value};

/// Payload type of signed evidence envelopes, for their DSSE signature.
pub const PAYLOAD_TYPE: &str = "application/vnd.workspace-assurance.evidence-envelope.v1+json";

/// Returns canonical JSON: members sorted by UTF-16 code units, numbers as ECMAScript writes the
/// nearest double, no white space.
///
/// # Panics
/// Never: a parsed JSON value has only finite numbers.
#[must_use]
pub fn jcs(value: &Value) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).expect("JSON has a canonical form")
}

/// Members of a JSON object in canonical form and order, so that several hashes, each without some
/// of the members, need one canonicalization.
#[derive(Debug)]
pub struct CanonicalJsonMembers(Vec<(String, Vec<u8>)>);

impl CanonicalJsonMembers {
    /// Canonicalizes the members of an object.
    #[must_use]
    pub fn of(object: &Map<String, Value>) -> Self {
        let mut members: Vec<_> =
            object.iter().map(|(name, value)| (name.clone(), jcs(value))).collect();
        members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        Self(members)
    }

    /// Returns the canonical form of the object without the named members.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Vec<u8> {
        let size: usize = self.0.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        let mut bytes = Vec::with_capacity(size + 2);
        bytes.push(b'{');
        for (name, value) in self.0.iter().filter(|(name, _)| !names.contains(&name.as_str())) {
            if bytes.len() > 1 {
                bytes.push(b',');
            }
            bytes.extend(jcs(&Value::from(name.as_str())));
            bytes.push(b':');
            bytes.extend(value);
        }
        bytes.push(b'}');
        bytes
    }
}

/// Returns DSSE's pre-authentication encoding of a payload of [`PAYLOAD_TYPE`].
#[must_use]
pub fn pae(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use area_shared::testing::corpus;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn canonical(text: &str) -> String {
        String::from_utf8(jcs(&serde_json::from_str(text).expect("JSON"))).expect("UTF-8")
    }

    #[test]
    fn the_vectors_of_rfc_8785_hold() {
        let Some(corpus) = corpus("rfc8785") else { return };
        for entry in std::fs::read_dir(corpus.join("input")).expect("a folder") {
            let input = entry.expect("an entry").path();
            let name = input.file_name().expect("a name");
            let read = |path| std::fs::read_to_string(path).expect("a file");
            let expected = read(corpus.join("output").join(name));
            assert_eq!(canonical(&read(input.clone())), expected.trim_end(), "{name:?}");
        }
    }

    #[test]
    fn numbers_are_written_as_ecmascript_writes_them() {
        let Some(corpus) = corpus("rfc8785") else { return };
        let numbers =
            std::fs::read_to_string(corpus.join("es6-numbers-10000.txt")).expect("a file");
        for line in numbers.lines() {
            let (bits, expected) = line.split_once(',').expect("bits, text");
            let number = f64::from_bits(u64::from_str_radix(bits, 16).expect("hex"));
            assert_eq!(canonical(expected), expected, "as text");
            assert_eq!(String::from_utf8(jcs(&json!(number))).expect("UTF-8"), expected);
        }
        assert_eq!(canonical("[9007199254740993, -0, 1E+2]"), "[9007199254740992,0,100]");
    }

    #[test]
    fn lone_surrogates_are_refused() {
        assert!(serde_json::from_str::<Value>(r#""\ud800""#).is_err());
        assert!(serde_json::from_str::<Value>("1e400").is_err());
    }

    #[test]
    fn the_encoding_is_dsse_s() {
        let encoded = String::from_utf8(pae(b"{}")).expect("UTF-8");
        assert_eq!(encoded, format!("DSSEv1 61 {PAYLOAD_TYPE} 2 {{}}"));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_its_own(value in any_json()) {
            let once = jcs(&value);
            let again: Value = serde_json::from_slice(&once).expect("JSON");
            prop_assert_eq!(jcs(&again), once);
        }

        #[test]
        fn members_add_up_to_their_object(value in any_json()) {
            if let Value::Object(object) = &value {
                prop_assert_eq!(CanonicalJsonMembers::of(object).without(&[]), jcs(&value));
                if let Some(name) = object.keys().next() {
                    let mut rest = object.clone();
                    rest.remove(name);
                    let without = CanonicalJsonMembers::of(object).without(&[name]);
                    prop_assert_eq!(without, jcs(&Value::Object(rest)));
                }
            }
        }

        #[test]
        fn white_space_and_order_do_not_matter(value in any_json()) {
            let pretty = serde_json::to_string_pretty(&value).expect("JSON");
            prop_assert_eq!(canonical(&pretty).into_bytes(), jcs(&value));
        }
    }
}
