//! Request headers that the host interprets.

use axum::http::{HeaderMap, header};

use super::code::Code;
use super::problem::Refusal;

/// Returns the value of a header that must not be repeated; `None` if it is absent.
///
/// # Errors
/// The header is repeated or is not text.
pub(super) fn single<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(malformed(name, "may be sent once"));
    }
    value.to_str().map(Some).map_err(|_| malformed(name, "has bytes that are not visible ASCII"))
}

/// Returns `Idempotency-Key`: 8 to 255 visible characters.
///
/// # Errors
/// The header is invalid, or missing where it is required.
pub(super) fn idempotency_key(
    headers: &HeaderMap,
    required: bool,
) -> Result<Option<String>, (&'static str, &'static str)> {
    const NAME: &str = "Idempotency-Key";
    let mut values = headers.get_all("idempotency-key").iter();
    let key = match (values.next(), values.next()) {
        (None, _) if required => return Err((NAME, "is required")),
        (None, _) => return Ok(None),
        (Some(_), Some(_)) => return Err((NAME, "may be sent once")),
        (Some(value), None) => value.as_bytes(),
    };
    let fits = (8..=255).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
    match std::str::from_utf8(key) {
        Ok(key) if fits => Ok(Some(key.to_owned())),
        _ => Err((NAME, "must have 8 to 255 visible characters")),
    }
}

/// Returns the version in `If-Match`; `None` for `*` or without the header. Accepts a weak entity
/// tag, because a compressing proxy may have weakened the one of the response.
///
/// # Errors
/// The value is not an entity tag of this service.
pub(super) fn if_match(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(text) = single(headers, header::IF_MATCH.as_str())? else { return Ok(None) };
    let tag = text.trim();
    if tag == "*" {
        return Ok(None);
    }
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    let quoted = tag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    // The tag of a read is a version and a digest; only the version is compared.
    let version =
        quoted.map(|quoted| quoted.split_once('.').map_or(quoted, |(version, _)| version));
    let digits = version.filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
    let digits = digits
        .ok_or_else(|| malformed("If-Match", "must be one version in quotes, such as \"3\""))?;
    // A number that is too large is the version of no resource.
    Ok(Some(digits.parse().unwrap_or(u64::MAX)))
}

/// Refuses partial bodies, which would be mistaken for complete ones (RFC 9110, section 14.5).
///
/// # Errors
/// The request has `Content-Range`.
pub(super) fn whole(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.contains_key(header::CONTENT_RANGE) {
        return Err(malformed(
            "Content-Range",
            "partial bodies are not accepted; send the whole body at once",
        ));
    }
    Ok(())
}

/// Returns the token in `Authorization`; `None` if the scheme is not Bearer.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns the value of the cookie `name`; `None` if the request does not have it.
pub(super) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    // Parsed as bytes, because other cookies need not be text.
    let mut pairs = headers
        .get_all(header::COOKIE)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    let value = pairs.find_map(|pair| {
        let (key, value) = pair.trim_ascii().split_at_checked(name.len())?;
        (key == name.as_bytes()).then(|| value.strip_prefix(b"="))?
    })?;
    std::str::from_utf8(value).ok().map(|value| value.trim_matches('"'))
}

/// Returns the media type of the body in lower case, without parameters.
pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let essence = text.split(';').next().unwrap_or_default().trim();
    Some(essence.to_ascii_lowercase())
}

pub(super) fn malformed(name: &str, message: &str) -> Refusal {
    Refusal::new(Code::MalformedRequest, format!("{name}: {message}"))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        let name = HeaderName::from_static(name);
        let pair = |value: &&str| (name.clone(), HeaderValue::from_str(value).unwrap());
        let mut map = HeaderMap::new();
        values.iter().map(pair).for_each(|(name, value)| {
            map.append(name, value);
        });
        map
    }

    #[test]
    fn a_key_has_8_to_255_visible_characters() {
        let key = |values: &[&str], required| {
            idempotency_key(&headers("idempotency-key", values), required)
        };
        assert_eq!(key(&["12345678"], true), Ok(Some("12345678".into())));
        assert_eq!(key(&[], false), Ok(None));
        assert_eq!(key(&[], true).unwrap_err().1, "is required");
        for odd in ["1234567", "1234 5678", &"x".repeat(256)] {
            assert!(key(&[odd], false).is_err(), "{odd}");
        }
        assert!(key(&["12345678", "87654321"], false).is_err());
    }

    #[test]
    fn if_match_is_one_quoted_version() {
        let version = |text| if_match(&headers("if-match", &[text])).ok();
        assert_eq!(version("\"3\""), Some(Some(3)));
        assert_eq!(version("\"3.44136fa355b3678a\""), Some(Some(3)));
        assert_eq!(version("W/\"3.44136fa355b3678a\""), Some(Some(3)));
        assert_eq!(version("\"99999999999999999999\""), Some(Some(u64::MAX)));
        assert_eq!(version("*"), Some(None));
        for odd in ["3", "W/3", "w/\"3\"", "\"3\", \"4\"", "\"x\"", "\"\"", "\"+3\""] {
            assert_eq!(version(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_bearer_credential_follows_its_scheme() {
        let map = |text| headers("authorization", &[text]);
        assert_eq!(bearer(&map("Bearer abc")), Some("abc"));
        assert_eq!(bearer(&map("bearer  abc ")), Some("abc"));
        assert_eq!(bearer(&map("Bearer")), Some(""));
        assert_eq!(bearer(&map("Basic abc")), None);
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn the_first_cookie_of_a_name_counts() {
        let map = headers("cookie", &["a=1; service_session=s3cr=et", "service_session=other"]);
        assert_eq!(cookie(&map, "service_session"), Some("s3cr=et"));
        assert_eq!(cookie(&map, "session"), None);
        let prefixed = headers("cookie", &["service_session2=x; service_session; b=\"y\""]);
        assert_eq!(cookie(&prefixed, "service_session"), None);
        assert_eq!(cookie(&prefixed, "b"), Some("y"));
    }

    #[test]
    fn a_cookie_is_found_beside_one_that_is_not_ascii() {
        let map = headers("cookie", &["a=é; service_session=s3cret"]);
        assert_eq!(cookie(&map, "service_session"), Some("s3cret"));
    }

    #[test]
    fn a_media_type_is_compared_without_its_parameters() {
        let map = headers("content-type", &["Application/JSON; charset=utf-8"]);
        assert_eq!(media_type(&map).as_deref(), Some("application/json"));
    }
}
