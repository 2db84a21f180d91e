//! Compresses responses with gzip, br or zstd.

use axum::http::{Extensions, HeaderMap, StatusCode, Version};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};

/// Size from which bodies are compressed, in bytes.
const COMPRESS_ABOVE: u64 = 1024;

/// Marks a response that contains a secret, so that it is not compressed. If it were compressed
/// together with text that an attacker chooses, its length would reveal the secret (BREACH).
#[derive(Clone, Copy)]
pub(in crate::http) struct NotCompressed;

pub(super) fn layer() -> CompressionLayer<impl Predicate> {
    let unless_secret = |_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions| {
        extensions.get::<NotCompressed>().is_none()
    };
    CompressionLayer::new().compress_when(SizeAbove::new(COMPRESS_ABOVE).and(unless_secret))
}
