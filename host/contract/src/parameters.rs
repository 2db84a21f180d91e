//! Parses request parameters into JSON scalars of the declared type.

use chrono::{DateTime, Utc};
use serde_json::{Value as Json, json};

use assurance_core::domain::manifest::ParameterKind;
use assurance_core::domain::time::Timestamp;

/// Parses one request parameter's text as a JSON scalar of the declared type.
///
/// # Errors
/// A phrase about the required form, which follows the parameter's name.
pub fn decode(kind: &ParameterKind, text: &str) -> Result<String, String> {
    if text.contains('\0') {
        return Err("must not contain U+0000".into());
    }
    match kind {
        ParameterKind::Text { min_length, max_length } => {
            decode_text(text, *min_length, *max_length)
        }
        ParameterKind::Integer { minimum, maximum } => decode_integer(text, *minimum, *maximum),
        ParameterKind::Boolean => match text {
            "true" | "false" => Ok(text.to_owned()),
            _ => Err("must be `true` or `false`".into()),
        },
        ParameterKind::Uuid => canonical_uuid(text)
            .map(|id| format!("\"{id}\""))
            .ok_or_else(|| "must be a UUID".to_owned()),
        ParameterKind::Timestamp => decode_timestamp(text),
        ParameterKind::OneOf { values } => {
            if values.iter().any(|value| value == text) {
                Ok(Json::from(text).to_string())
            } else {
                Err(format!("must be one of {}", values.join(", ")))
            }
        }
    }
}

/// Parses a UUID in its hyphenated form, in either case (RFC 9562, section 4).
#[must_use]
pub fn canonical_uuid(text: &str) -> Option<uuid::Uuid> {
    (text.len() == 36).then(|| uuid::Uuid::try_parse(text).ok()).flatten()
}

/// Returns the JSON Schema of a parameter's values, for OpenAPI.
pub(super) fn schema(kind: &ParameterKind) -> Json {
    match kind {
        ParameterKind::Text { min_length, max_length } => {
            json!({"type": "string", "minLength": min_length, "maxLength": max_length})
        }
        ParameterKind::Integer { minimum, maximum } => {
            json!({"type": "integer", "minimum": minimum, "maximum": maximum})
        }
        ParameterKind::Boolean => json!({"type": "boolean"}),
        ParameterKind::Uuid => json!({"type": "string", "format": "uuid"}),
        ParameterKind::Timestamp => json!({"type": "string", "format": "date-time"}),
        ParameterKind::OneOf { values } => json!({"type": "string", "enum": values}),
    }
}

/// Returns why a parameter's declared type and default are contradictory;
/// `None` if they are not.
pub(super) fn complaint(kind: &ParameterKind, default: Option<&Json>) -> Option<String> {
    match kind {
        ParameterKind::Text { min_length, max_length } if min_length > max_length => {
            return Some(format!("min-length {min_length} is above max-length {max_length}"));
        }
        ParameterKind::Integer { minimum, maximum } if minimum > maximum => {
            return Some(format!("minimum {minimum} is above maximum {maximum}"));
        }
        ParameterKind::OneOf { values } if values.is_empty() => {
            return Some("one-of needs at least one value".into());
        }
        _ => {}
    }
    let default = default?;
    let text = match default {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    match decode(kind, &text) {
        Ok(decoded) if serde_json::from_str::<Json>(&decoded).ok().as_ref() == Some(default) => {
            None
        }
        _ => Some(format!("the default {default} is not a value of its type")),
    }
}

fn decode_text(text: &str, min_length: u32, max_length: u32) -> Result<String, String> {
    let length = text.chars().count();
    if length < min_length as usize || length > max_length as usize {
        return Err(format!("must have {min_length} to {max_length} characters"));
    }
    Ok(Json::from(text).to_string())
}

fn decode_integer(text: &str, minimum: i64, maximum: i64) -> Result<String, String> {
    let range = || {
        if minimum == i64::MIN && maximum == i64::MAX {
            "must be an integer".to_owned()
        } else {
            format!("must be an integer from {minimum} to {maximum}")
        }
    };
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(range());
    }
    let value: i64 = text.parse().map_err(|_| range())?;
    if (minimum..=maximum).contains(&value) { Ok(value.to_string()) } else { Err(range()) }
}

fn decode_timestamp(text: &str) -> Result<String, String> {
    let moment = DateTime::parse_from_rfc3339(text)
        .map_err(|_| "must be an RFC 3339 date-time, such as 2026-01-31T09:30:00Z".to_owned())?;
    let moment = Timestamp(moment.with_timezone(&Utc).timestamp_micros());
    Ok(format!("\"{}\"", moment.to_rfc3339()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &ParameterKind, text: &str, expect: Result<&str, &str>) {
        let found = decode(kind, text);
        assert_eq!(found.as_deref().map_err(String::as_str), expect, "{kind:?} {text:?}");
    }

    #[test]
    fn each_kind_reads_its_own_values() {
        let text = ParameterKind::Text { min_length: 1, max_length: 3 };
        check(&text, "añ\"", Ok("\"añ\\\"\""));
        check(&text, "abcd", Err("must have 1 to 3 characters"));
        check(&text, "a\0", Err("must not contain U+0000"));
        let integer = ParameterKind::Integer { minimum: 1, maximum: 100 };
        check(&integer, "007", Ok("7"));
        check(&integer, "+7", Err("must be an integer from 1 to 100"));
        check(&integer, "101", Err("must be an integer from 1 to 100"));
        check(&integer, "9999999999999999999999", Err("must be an integer from 1 to 100"));
        check(&ParameterKind::Boolean, "true", Ok("true"));
        check(&ParameterKind::Boolean, "1", Err("must be `true` or `false`"));
        let words = ParameterKind::OneOf { values: vec!["a".into(), "b".into()] };
        check(&words, "b", Ok("\"b\""));
        check(&words, "c", Err("must be one of a, b"));
    }

    #[test]
    fn ids_and_moments_become_canonical() {
        check(
            &ParameterKind::Uuid,
            "01939F1A-0000-7000-8000-00000000000A",
            Ok("\"01939f1a-0000-7000-8000-00000000000a\""),
        );
        check(&ParameterKind::Uuid, "01939f1a00007000800000000000000a", Err("must be a UUID"));
        check(
            &ParameterKind::Timestamp,
            "2026-01-31T10:30:00+01:00",
            Ok("\"2026-01-31T09:30:00.000000Z\""),
        );
    }

    #[test]
    fn a_default_must_be_of_the_type() {
        let integer = ParameterKind::Integer { minimum: 1, maximum: 100 };
        assert_eq!(complaint(&integer, Some(&json!(50))), None);
        assert!(complaint(&integer, Some(&json!("50"))).is_some());
        assert!(complaint(&integer, Some(&json!(500))).is_some());
        assert!(complaint(&ParameterKind::Boolean, Some(&json!(false))).is_none());
    }
}
