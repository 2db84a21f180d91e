//! Normalizes the percent-encoding of request paths before they are routed.

use axum::http::Uri;
use axum::http::uri::PathAndQuery;

/// Decodes the encoded letters, digits and `-`, `_`, `~` of the path, once (RFC 3986, section
/// 6.2.2.2). Dots stay encoded, so that no segment becomes `.` or `..`. Returns `None` if the path
/// is not encoded, or if the encoding is invalid.
pub(super) fn normalized(uri: &Uri) -> Option<Uri> {
    let path = Some(uri.path()).filter(|path| path.contains('%')).and_then(decoded)?;
    let target = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(target).ok()?);
    Uri::from_parts(parts).ok()
}

fn decoded(path: &str) -> Option<String> {
    let mut pieces = path.split('%');
    let mut decoded = pieces.next()?.to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        match u8::from_str_radix(digits, 16).ok()? {
            byte if byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) => {
                decoded.push(char::from(byte));
            }
            _ => decoded.extend(["%", digits]),
        }
        decoded.push_str(rest);
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_digits_and_marks_are_decoded_once() {
        for (sent, routed) in [
            ("/v1/%73upp%6Frt/%2d%5F%7e?q=%61", "/v1/support/-_~?q=%61"),
            ("http://here/%76%31", "http://here/v1"),
            ("/%2573/%2f/%2E%2e/%c3%a9/%00", "/%2573/%2f/%2E%2e/%c3%a9/%00"),
        ] {
            let uri = normalized(&Uri::from_static(sent)).unwrap();
            assert_eq!(uri.to_string(), routed, "{sent}");
        }
        for sent in ["/v1", "/%", "/%7", "/%zz%73", "/%2%35f", "/%+1"] {
            assert_eq!(normalized(&Uri::from_static(sent)), None, "{sent}");
        }
    }
}
