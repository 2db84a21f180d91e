//! Reads `multipart/form-data` bodies part by part, as declared by the route.

use std::error::Error as StdError;
use std::time::Duration;

use axum::RequestExt;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{DefaultBodyLimit, Multipart, Request};
use axum::http::{HeaderMap, header};

use super::body::{BodyReadError, BodyReader};
use super::code::Code;
use super::headers;
use super::problem::Refusal;
use assurance_core::domain::area::{ReceivedFormPart, Violation};
use assurance_core::domain::manifest::FormPart;

/// Reads a whole multipart form. Adds violations of the declared parts to `violations`.
///
/// # Errors
/// The body is too large, too slow, or not a form.
pub(super) async fn read(
    headers: &HeaderMap,
    content: BodyReader,
    declared: &[FormPart],
    time: Duration,
    violations: &mut Vec<Violation>,
) -> Result<Vec<ReceivedFormPart>, Refusal> {
    // An absent body has no media type. It is reported as missing every part.
    let parts = if headers.contains_key(header::CONTENT_TYPE) {
        let form = multipart(headers, content).await?;
        let reading = read_parts(form, declared, violations);
        tokio::time::timeout(time, reading).await.map_err(|_| BodyReadError::TooSlow)??
    } else {
        Vec::new()
    };
    for missing in declared.iter().filter(|d| d.required && !has(&parts, &d.name)) {
        refuse(violations, &missing.name, "is required");
    }
    Ok(parts)
}

async fn multipart(headers: &HeaderMap, content: BodyReader) -> Result<Multipart, Refusal> {
    let mut request = Request::new(content.into_body());
    if let Some(kind) = headers.get(header::CONTENT_TYPE) {
        request.headers_mut().insert(header::CONTENT_TYPE, kind.clone());
    }
    // `Content` limits the size itself.
    DefaultBodyLimit::disable().apply(&mut request);
    let form = request.extract::<Multipart, _>().await;
    form.map_err(|_| headers::malformed("Content-Type", "has no boundary"))
}

async fn read_parts(
    mut form: Multipart,
    declared: &[FormPart],
    violations: &mut Vec<Violation>,
) -> Result<Vec<ReceivedFormPart>, Refusal> {
    let mut parts: Vec<ReceivedFormPart> = Vec::new();
    while let Some(field) = form.next_field().await.map_err(broken)? {
        let name = field.name().unwrap_or_default().to_owned();
        let Some(spec) = declared.iter().find(|spec| spec.name == name) else {
            let known = declared.iter().map(|spec| spec.name.as_str());
            let meant = assurance_contract::did_you_mean(&name, known);
            refuse(violations, &name, &format!("is not a part of this operation{meant}"));
            continue;
        };
        if has(&parts, &name) {
            refuse(violations, &name, "is given more than once");
            continue;
        }
        let part = read_part(field, spec).await?;
        if !spec.file && !is_clean_text(&part.content) {
            refuse(violations, &name, "must be UTF-8 text without U+0000");
        }
        parts.push(part);
    }
    Ok(parts)
}

async fn read_part(mut field: Field<'_>, spec: &FormPart) -> Result<ReceivedFormPart, Refusal> {
    let filename = field.file_name().filter(|_| spec.file).map(str::to_owned);
    let content_type = field.content_type().map(str::to_owned);
    let mut content = Vec::new();
    while let Some(piece) = field.chunk().await.map_err(broken)? {
        if (content.len() + piece.len()) as u64 > spec.max_bytes {
            let detail = format!("The part {:?} exceeds {} bytes.", spec.name, spec.max_bytes);
            return Err(Refusal::new(Code::PayloadTooLarge, detail));
        }
        content.extend_from_slice(&piece);
    }
    Ok(ReceivedFormPart { name: spec.name.clone(), filename, content_type, content })
}

/// Converts an error of the multipart parser. Errors of the body keep their code; others mean an
/// invalid form.
fn broken(error: MultipartError) -> Refusal {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(&error);
    while let Some(inner) = cause {
        match inner.downcast_ref::<BodyReadError>() {
            Some(BodyReadError::TooLarge(limit)) => return BodyReadError::TooLarge(*limit).into(),
            Some(other) => {
                return Refusal::new(Code::MalformedRequest, format!("Bad body: {other}."));
            }
            None => cause = inner.source(),
        }
    }
    Refusal::invalid_one("", &format!("is not a readable form: {}", error.body_text()))
}

fn has(parts: &[ReceivedFormPart], name: &str) -> bool {
    parts.iter().any(|part| part.name == name)
}

fn is_clean_text(content: &[u8]) -> bool {
    std::str::from_utf8(content).is_ok_and(|text| !text.contains('\0'))
}

fn refuse(violations: &mut Vec<Violation>, name: &str, message: &str) {
    violations.push(Violation { pointer: name.to_owned(), message: message.to_owned() });
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::HeaderValue;
    use axum::response::IntoResponse;

    use super::*;

    fn declared() -> Vec<FormPart> {
        let part = |name: &str, required, file, max_bytes| FormPart {
            name: name.into(),
            summary: String::new(),
            required,
            file,
            max_bytes,
        };
        vec![part("file", true, true, 8), part("title", false, false, 100)]
    }

    async fn form(
        parts: &[(&str, &str)],
        limit: u64,
    ) -> Result<(Vec<ReceivedFormPart>, Vec<Violation>), u16> {
        let mut text = String::new();
        for (disposition, content) in parts {
            text += &format!(
                "--xx\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{content}\r\n"
            );
        }
        text += "--xx--\r\n";
        let kind = HeaderValue::from_static("multipart/form-data; boundary=xx");
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, kind)]);
        let content = BodyReader::open(&headers, Body::from(text), limit).map_err(status)?;
        let mut violations = Vec::new();
        let time = Duration::from_secs(1);
        match read(&headers, content, &declared(), time, &mut violations).await {
            Ok(parts) => Ok((parts, violations)),
            Err(refusal) => Err(status(refusal)),
        }
    }

    fn status(refusal: Refusal) -> u16 {
        refusal.into_response().status().as_u16()
    }

    #[tokio::test]
    async fn a_form_of_the_declared_shape_is_read() {
        let parts = [("name=\"title\"", "é"), ("name=\"file\"; filename=\"a.csv\"", "1,2")];
        let (parts, violations) = form(&parts, 1000).await.unwrap();
        assert!(violations.is_empty());
        assert_eq!(parts[1].filename.as_deref(), Some("a.csv"));
        assert_eq!(parts[1].content, b"1,2");
    }

    #[tokio::test]
    async fn unknown_repeated_and_missing_parts_are_named() {
        let parts = [("name=\"x\"", "1"), ("name=\"title\"", "a"), ("name=\"title\"", "b")];
        let (_, violations) = form(&parts, 1000).await.unwrap();
        let named: Vec<_> = violations.iter().map(|v| v.pointer.as_str()).collect();
        assert_eq!(named, ["x", "title", "file"]);
    }

    #[tokio::test]
    async fn sizes_are_refused_for_a_part_and_for_the_whole() {
        assert_eq!(form(&[("name=\"file\"", "123456789")], 1000).await.unwrap_err(), 413);
        assert_eq!(form(&[("name=\"file\"", "1")], 20).await.unwrap_err(), 413);
    }
}
