//! Headers of every response: request id, rate limits, caching and content sniffing.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::http::context::RequestContext;

pub(super) fn add(context: &RequestContext, headers: &mut HeaderMap) {
    if let Ok(id) = HeaderValue::from_str(context.request_id()) {
        headers.insert("x-request-id", id);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(const { HeaderValue::from_static("no-store") });
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, const { HeaderValue::from_static("nosniff") });
    if let Some((policy, limit)) = context.rate_headers() {
        headers.insert("ratelimit-policy", policy);
        headers.insert("ratelimit", limit);
    }
}
