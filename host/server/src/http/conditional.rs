//! Conditional reads: responds 304 without a body if the client has the current representation (RFC
//! 9110, section 13).

use ::headers::{ETag, HeaderMapExt as _, IfNoneMatch};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use sha2::{Digest as _, Sha256};

use super::area;
use assurance_service::app::call::CommittedResponse;

/// Number of bytes of the body's SHA-256 in an `ETag`.
const DIGEST_BYTES: usize = 8;

/// Returns the response to a read. Its `ETag` contains the resource's version, which `If-Match`
/// uses, and a digest of the body. The body can change without the version, such as the messages of
/// a conversation, and can depend on the caller.
pub(super) fn respond(request: &HeaderMap, answered: CommittedResponse) -> Response {
    let tag = answered.version.map(|version| {
        let digest = Sha256::digest(answered.body.as_deref().unwrap_or_default());
        format!("\"{version}.{}\"", hex::encode(&digest[..DIGEST_BYTES]))
    });
    let mut response = area::respond(answered);
    if let Some(Ok(tag)) = tag.map(HeaderValue::try_from) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    unless_known(request, response)
}

/// Returns the response to a GET or HEAD, or 304 if `If-None-Match` contains its `ETag`. Tags are
/// compared weakly, because a compressing proxy may have weakened them. An invalid header is
/// ignored. The 304 has the `Vary` of the body that is not sent, which may have been compressed
/// (RFC 9110, section 15.4.5).
pub(super) fn unless_known(request: &HeaderMap, mut response: Response) -> Response {
    let tag = response.headers().typed_get::<ETag>();
    let known = request.typed_get::<IfNoneMatch>();
    if let (Some(tag), Some(known)) = (tag, known)
        && !known.precondition_passes(&tag)
    {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        for of_the_body in [header::CONTENT_TYPE, header::CONTENT_LENGTH] {
            response.headers_mut().remove(of_the_body);
        }
        let vary = const { HeaderValue::from_static("accept-encoding") };
        response.headers_mut().append(header::VARY, vary);
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::response::IntoResponse as _;

    use super::*;

    fn status(tag: Option<&'static str>, known: Option<&'static str>) -> u16 {
        let mut response = "body".into_response();
        let mut request = HeaderMap::new();
        if let Some(tag) = tag {
            response.headers_mut().insert(header::ETAG, HeaderValue::from_static(tag));
        }
        if let Some(known) = known {
            request.insert(header::IF_NONE_MATCH, HeaderValue::from_static(known));
        }
        let response = unless_known(&request, response);
        assert_eq!(response.headers().contains_key(header::CONTENT_TYPE), response.status() == 200);
        assert_eq!(response.headers().contains_key(header::VARY), response.status() == 304);
        response.status().as_u16()
    }

    #[test]
    fn a_tag_changes_with_the_version_and_with_the_body() {
        let tag = |version, body: &str| {
            let body = Some(body.to_owned());
            let answered = CommittedResponse { status: 200, body, version, replayed: false };
            respond(&HeaderMap::new(), answered).headers().get(header::ETAG).cloned()
        };
        let first = tag(Some(3), "{}").unwrap();
        assert_eq!(first, "\"3.44136fa355b3678a\"");
        assert_ne!(tag(Some(3), "[]").unwrap(), first);
        assert_ne!(tag(Some(4), "{}").unwrap(), first);
        assert_eq!(tag(None, "{}"), None);
    }

    #[test]
    fn only_the_current_version_is_not_sent_again() {
        let three = Some("\"3\"");
        for known in ["\"3\"", "W/\"3\"", "\"2\", \"3\"", "*"] {
            assert_eq!(status(three, Some(known)), 304, "{known}");
        }
        for other in ["\"2\"", "3", "", "\"33\""] {
            assert_eq!(status(three, Some(other)), 200, "{other}");
        }
        assert_eq!(status(three, None), 200);
        assert_eq!(status(None, Some("*")), 200);
    }
}
