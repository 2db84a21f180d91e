//! Validates the header section of every request before it is routed.

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version, header};

use super::headers::malformed;
use super::problem::Refusal;

/// Maximum number of header fields of a request.
pub(super) const MOST_FIELDS: usize = 100;

/// Headers that must not be repeated. This server would use the first value and another one might
/// use the last.
const SENT_ONCE: [HeaderName; 4] =
    [header::AUTHORIZATION, header::CONTENT_TYPE, header::HOST, header::ORIGIN];

/// Refuses ambiguous header sections and those larger than `most_bytes`.
///
/// # Errors
/// 400 (`malformed_request`).
pub(super) fn check(parts: &Parts, most_bytes: u32) -> Result<(), Refusal> {
    let headers = &parts.headers;
    if headers.len() > MOST_FIELDS {
        return Err(malformed("The header section", &format!("may have {MOST_FIELDS} fields")));
    }
    if bytes_of(parts) > most_bytes as usize {
        return Err(malformed("The header section", &format!("may have {most_bytes} bytes")));
    }
    if let Some(name) = SENT_ONCE.iter().find(|name| headers.get_all(*name).iter().count() > 1) {
        return Err(malformed(name.as_str(), "may be sent once"));
    }
    match headers.get(header::HOST) {
        None if parts.version == Version::HTTP_11 => Err(malformed("Host", "is required")),
        Some(host) if !is_host(host) => Err(malformed("Host", "is not the name of a host")),
        _ => Ok(()),
    }
}

/// Returns the size of a request's header section in HTTP/1.1 form, in bytes: the target, and for
/// each field its name, its value and four bytes for separators.
fn bytes_of(parts: &Parts) -> usize {
    let fields = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let target = parts.uri.path_and_query().map_or(0, |target| target.as_str().len());
    target + fields.sum::<usize>()
}

/// Returns whether the value of `Host` is valid. An empty host is valid (RFC 9110, section 7.2).
fn is_host(value: &HeaderValue) -> bool {
    value.is_empty() || Authority::try_from(value.as_bytes()).is_ok()
}

/// Removes the client's exclusion of uncompressed responses (`identity;q=0`, `*;q=0`). HTTP allows
/// a server to ignore it, and the listed codings are still used. A refusal would come too late: the
/// coding is chosen after the request had its effect.
pub(super) fn allow_identity(headers: &mut HeaderMap) {
    let lists = headers.get_all(header::ACCEPT_ENCODING).iter();
    let codings: Vec<&str> =
        lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(',')).collect();
    let kept: Vec<&str> =
        codings.iter().copied().filter(|coding| !refuses_identity(coding)).collect();
    if kept.len() == codings.len() {
        return;
    }
    let kept = HeaderValue::from_str(&kept.join(","));
    headers.remove(header::ACCEPT_ENCODING);
    if let Ok(kept) = kept {
        headers.insert(header::ACCEPT_ENCODING, kept);
    }
}

fn refuses_identity(coding: &str) -> bool {
    let Some((coding, weight)) = coding.split_once(';') else { return false };
    let coding = coding.trim();
    let weight = weight.trim().strip_prefix(['q', 'Q']).and_then(|rest| rest.strip_prefix('='));
    (coding == "*" || coding.eq_ignore_ascii_case("identity"))
        && weight.is_some_and(|weight| weight.bytes().all(|byte| matches!(byte, b'0' | b'.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(lists: &[&'static str]) -> HeaderMap {
        let lists = lists.iter().map(|list| HeaderValue::from_static(list));
        lists.fold(HeaderMap::new(), |mut map, list| {
            map.append(header::ACCEPT_ENCODING, list);
            map
        })
    }

    fn refused(version: Version, fields: &[(&str, &str)], most_bytes: u32) -> Option<String> {
        let request = axum::http::Request::get("/v1/x?y=z").version(version);
        let with = |request: axum::http::request::Builder, (name, value): &(&str, &str)| {
            request.header(*name, *value)
        };
        let (parts, ()) = fields.iter().fold(request, with).body(()).unwrap().into_parts();
        check(&parts, most_bytes).err().map(|refusal| format!("{refusal:?}"))
    }

    #[test]
    fn a_head_is_read_alike_by_everybody() {
        let host = ("host", "a.example:8080");
        let json = ("content-type", "application/json");
        for (version, good) in [
            (Version::HTTP_11, &[host, json, ("accept", "a"), ("accept", "b")][..]),
            (Version::HTTP_11, &[("host", "")]),
            (Version::HTTP_11, &[("host", "[::1]:80")]),
            (Version::HTTP_10, &[]),
            (Version::HTTP_2, &[json]),
        ] {
            assert_eq!(refused(version, good, 1_000), None, "{good:?}");
        }
        for (bad, named) in [
            (&[json][..], "Host: is required"),
            (&[host, host], "host: may be sent once"),
            (&[host, json, json], "content-type: may be sent once"),
            (&[("host", "a b")], "Host: is not"),
        ] {
            let told = refused(Version::HTTP_11, bad, 1_000).expect("a refusal");
            assert!(told.contains(named), "{bad:?}: {told}");
        }
    }

    #[test]
    fn a_head_is_bounded_in_bytes_and_fields() {
        let host = ("host", "a.example");
        assert_eq!(refused(Version::HTTP_11, &[host], 26), None);
        assert!(
            refused(Version::HTTP_11, &[host], 25).is_some_and(|told| told.contains("25 bytes"))
        );
        let many = [("x", "y"); MOST_FIELDS + 1];
        assert!(refused(Version::HTTP_2, &many[1..], 10_000).is_none());
        assert!(refused(Version::HTTP_2, &many, 10_000).is_some());
    }

    #[test]
    fn nobody_can_refuse_an_answer_as_it_is() {
        let kept = |values: &[&'static str]| {
            let mut map = accepting(values);
            allow_identity(&mut map);
            let lists = map.get_all("accept-encoding").iter().map(|list| list.to_str().unwrap());
            lists.collect::<Vec<_>>().join("|")
        };
        assert_eq!(kept(&["gzip, br;q=0.5", "*"]), "gzip, br;q=0.5|*");
        assert_eq!(kept(&["identity;q=0"]), "");
        assert_eq!(kept(&["Identity ; Q=0.000", "*;q=0"]), "");
        assert_eq!(kept(&["gzip;q=0.8, *;q=0"]), "gzip;q=0.8");
        assert_eq!(kept(&["identity;q=0, *;q=0.5"]), " *;q=0.5");
    }
}
