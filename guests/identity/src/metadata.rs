//! Metadata of a provider (OpenID Connect Discovery 1.0), and the checks before it is accepted.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Members of the provider's metadata that are stored.
const KEPT: [&str; 17] = [
    "authorization_endpoint",
    "claims_supported",
    "code_challenge_methods_supported",
    "end_session_endpoint",
    "grant_types_supported",
    "id_token_signing_alg_values_supported",
    "introspection_endpoint",
    "issuer",
    "jwks_uri",
    "response_modes_supported",
    "response_types_supported",
    "revocation_endpoint",
    "scopes_supported",
    "subject_types_supported",
    "token_endpoint",
    "token_endpoint_auth_methods_supported",
    "userinfo_endpoint",
];

/// Required members of an identity provider's metadata whose values are URLs.
const REQUIRED_URLS: [&str; 3] = ["authorization_endpoint", "jwks_uri", "token_endpoint"];

/// Optional members of an identity provider's metadata whose values are URLs.
const OPTIONAL_URLS: [&str; 4] =
    ["end_session_endpoint", "introspection_endpoint", "revocation_endpoint", "userinfo_endpoint"];

/// Members of JSON Web Keys that only private and symmetric keys have (RFC 7518, sections 6.2.2,
/// 6.3.2 and 6.4.1).
const PRIVATE_MEMBERS: [&str; 7] = ["d", "p", "q", "dp", "dq", "qi", "k"];

/// Returns the URL of an issuer's metadata.
pub(crate) fn url(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}

/// Parses a JSON object; `None` if it contains U+0000, which documents cannot store.
fn object(body: &[u8]) -> Option<Map<String, Value>> {
    let text = std::str::from_utf8(body).ok()?;
    if text.contains("\\u0000") {
        return None;
    }
    serde_json::from_str::<JsonObjectWithoutDuplicates>(text)
        .ok()
        .map(|JsonObjectWithoutDuplicates(members)| members)
}

/// A JSON object without duplicate members. If `issuer` occurred twice, one parser would use the
/// first value and another the last.
struct JsonObjectWithoutDuplicates(Map<String, Value>);

impl<'de> Deserialize<'de> for JsonObjectWithoutDuplicates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct JsonObjectVisitor;
        impl<'de> Visitor<'de> for JsonObjectVisitor {
            type Value = JsonObjectWithoutDuplicates;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<JsonObjectWithoutDuplicates, A::Error> {
                let mut members = Map::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if members.insert(name, value).is_some() {
                        return Err(A::Error::custom("a member is duplicated"));
                    }
                }
                Ok(JsonObjectWithoutDuplicates(members))
            }
        }
        deserializer.deserialize_map(JsonObjectVisitor)
    }
}

/// Parses and validates an issuer's metadata. An error is the code for `last_error_code`.
pub(crate) fn read(
    issuer: &str,
    body: &[u8],
    may_be_sent_to: impl Fn(&str) -> bool,
) -> Result<Map<String, Value>, &'static str> {
    let mut metadata = object(body).ok_or("discovery_invalid")?;
    // Compared byte by byte, so that no provider can impersonate another.
    if metadata.get("issuer").and_then(Value::as_str) != Some(issuer) {
        return Err("issuer_mismatch");
    }
    for name in REQUIRED_URLS {
        let url = metadata.get(name).and_then(Value::as_str).ok_or("discovery_invalid")?;
        if !may_be_sent_to(url) {
            return Err("endpoint_refused");
        }
    }
    for name in OPTIONAL_URLS {
        let url = metadata.get(name).filter(|url| !url.is_null());
        if url.is_some_and(|url| !url.as_str().is_some_and(&may_be_sent_to)) {
            return Err("endpoint_refused");
        }
    }
    if !lists(&metadata, "response_types_supported", |name| name == "code") {
        return Err("code_flow_unsupported");
    }
    if !lists(&metadata, "id_token_signing_alg_values_supported", is_asymmetric) {
        return Err("signing_unsupported");
    }
    metadata.retain(|name, value| KEPT.contains(&name.as_str()) && is_plain(value));
    Ok(metadata)
}

/// Whether a value is a string or a list of strings, as all stored members of the metadata are.
fn is_plain(value: &Value) -> bool {
    value.is_string() || value.as_array().is_some_and(|values| values.iter().all(Value::is_string))
}

fn lists(metadata: &Map<String, Value>, name: &str, wanted: impl Fn(&str) -> bool) -> bool {
    let values = metadata.get(name).and_then(Value::as_array);
    values.is_some_and(|values| values.iter().filter_map(Value::as_str).any(wanted))
}

/// Whether signatures of this JWS algorithm (`alg`) are verified with public keys.
fn is_asymmetric(algorithm: &str) -> bool {
    ["RS", "PS", "ES", "Ed"].iter().any(|family| algorithm.starts_with(family))
}

/// Returns the canonical form (RFC 8785) of a set of public keys (RFC 7517).
pub(crate) fn canonical_keys(body: &[u8]) -> Result<Vec<u8>, &'static str> {
    let set = object(body).ok_or("jwks_invalid")?;
    let keys = set.get("keys").and_then(Value::as_array).ok_or("jwks_invalid")?;
    if keys.is_empty() || !keys.iter().all(is_public_key) {
        return Err("jwks_invalid");
    }
    serde_json_canonicalizer::to_vec(&Value::Object(set)).map_err(|_| "jwks_invalid")
}

fn is_public_key(key: &Value) -> bool {
    let Some(key) = key.as_object() else { return false };
    let kind = key.get("kty").and_then(Value::as_str);
    let private = PRIVATE_MEMBERS.iter().any(|member| key.contains_key(*member));
    kind.is_some_and(|kind| kind != "oct") && !private
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const ISSUER: &str = "https://id.example/tenant/";

    fn good() -> Value {
        json!({
            "issuer": ISSUER,
            "authorization_endpoint": "https://id.example/authorize",
            "token_endpoint": "https://id.example/token",
            "jwks_uri": "https://id.example/keys",
            "userinfo_endpoint": null,
            "response_types_supported": ["code", "id_token"],
            "id_token_signing_alg_values_supported": ["none", "RS256"],
            "something_else": "x",
            "claims_supported": [["sub"]],
        })
    }

    fn verdict(metadata: &Value) -> Result<Map<String, Value>, &'static str> {
        let sent_to = |url: &str| url.starts_with("https://id.example/");
        read(ISSUER, metadata.to_string().as_bytes(), sent_to)
    }

    #[test]
    fn good_metadata_is_kept_as_far_as_it_is_known() {
        let kept = verdict(&good()).expect("good");
        assert_eq!(kept["jwks_uri"], "https://id.example/keys");
        for left_out in ["something_else", "userinfo_endpoint", "claims_supported"] {
            assert!(!kept.contains_key(left_out), "{left_out}");
        }
    }

    #[test]
    fn each_rule_has_its_code() {
        for (member, value, code) in [
            ("issuer", json!("https://id.example/tenant"), "issuer_mismatch"),
            ("issuer", json!("https://ID.example/tenant/"), "issuer_mismatch"),
            ("issuer", json!(null), "issuer_mismatch"),
            ("token_endpoint", json!(null), "discovery_invalid"),
            ("jwks_uri", json!("http://id.example/keys"), "endpoint_refused"),
            ("userinfo_endpoint", json!("https://10.0.0.1/"), "endpoint_refused"),
            ("userinfo_endpoint", json!(7), "endpoint_refused"),
            ("response_types_supported", json!(["id_token"]), "code_flow_unsupported"),
            (
                "id_token_signing_alg_values_supported",
                json!(["none", "HS256"]),
                "signing_unsupported",
            ),
            ("scopes_supported", json!(["a\u{0}"]), "discovery_invalid"),
        ] {
            let mut metadata = good();
            metadata[member] = value;
            assert_eq!(verdict(&metadata), Err(code), "{member}");
        }
        let twice = good().to_string().replacen('{', r#"{"issuer":"https://evil.example/","#, 1);
        for body in [&b"<html>"[..], b"[]", b"\xff", b"", twice.as_bytes()] {
            assert_eq!(read(ISSUER, body, |_| true), Err("discovery_invalid"));
        }
    }

    #[test]
    fn the_metadata_is_beside_the_issuer() {
        assert_eq!(url(ISSUER), "https://id.example/tenant/.well-known/openid-configuration");
        assert_eq!(url("https://a.example"), "https://a.example/.well-known/openid-configuration");
    }

    #[test]
    fn keys_are_public_and_made_canonical() {
        let canonical = canonical_keys(br#"{"keys": [{"n": "x", "kty": "RSA", "e": "AQAB"}]}"#);
        let expected = br#"{"keys":[{"e":"AQAB","kty":"RSA","n":"x"}]}"#.to_vec();
        assert_eq!(canonical, Ok(expected));
        for wrong in [
            r#"{"keys":[]}"#,
            r#"{"keys":[7]}"#,
            r#"{"keys":[{"n":"x"}]}"#,
            r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#,
            r#"{"keys":[{"kty":"RSA","n":"x","e":"AQAB","d":"secret"}]}"#,
            "{}",
            "nonsense",
        ] {
            assert_eq!(canonical_keys(wrong.as_bytes()), Err("jwks_invalid"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn the_digest_does_not_hang_on_spelling(n in "[A-Za-z0-9_-]{1,40}", e in "[A-Z]{1,4}") {
            let one = format!(r#"{{"keys":[{{"kty":"RSA","n":"{n}","e":"{e}"}}]}}"#);
            let other = format!("{{ \"keys\" : [ {{\"e\":\"{e}\",\n\"n\":\"{n}\",\"kty\":\"\\u0052SA\"}}]}}");
            prop_assert_eq!(canonical_keys(one.as_bytes()), canonical_keys(other.as_bytes()));
        }
    }
}
