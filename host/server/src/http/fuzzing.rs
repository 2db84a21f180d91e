//! Entry points for fuzzing: parsers of requests, schemas and the configuration.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use serde_json::Value as Json;

use super::body::BodyReader;
use super::{forms, json, parameters};
use assurance_contract::CompiledSchema;
use assurance_core::config::{Config, ConfigSources};
use assurance_core::domain::manifest::FormPart;

/// Maximum size of a decompressed body in the fuzzed functions, in bytes.
const MOST_BYTES: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build();
    executor.expect("an executor").block_on(work)
}

fn headers(name: header::HeaderName, value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
}

/// Parses a JSON body. Returns the size of the value in bytes.
#[must_use]
pub fn json(bytes: &[u8]) -> usize {
    let Ok(text) = std::str::from_utf8(bytes) else { return 0 };
    json::parse(text).map_or(0, |parsed| parsed.value.to_string().len())
}

/// Parses a form with the boundary `x`. Returns the total size of its parts in bytes.
#[must_use]
pub fn multipart(bytes: &[u8]) -> usize {
    let headers = headers(header::CONTENT_TYPE, "multipart/form-data; boundary=x");
    let part = |name: &str, file| FormPart {
        name: name.into(),
        summary: String::new(),
        required: false,
        file,
        max_bytes: MOST_BYTES,
    };
    let declared = [part("file", true), part("title", false)];
    let Ok(content) = BodyReader::open(&headers, Body::from(bytes.to_vec()), MOST_BYTES) else {
        return 0;
    };
    let mut wrong = Vec::new();
    let read = block_on(forms::read(&headers, content, &declared, PATIENCE, &mut wrong));
    let parts = read.map_or(0, |parts| parts.iter().map(|part| part.content.len()).sum());
    parts + wrong.iter().map(|one| one.pointer.len() + one.message.len()).sum::<usize>()
}

/// Parses a query. Returns the total size of its names and values in bytes.
#[must_use]
pub fn query(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let _ = parameters::page(&text);
    parameters::split_query(&text)
        .map_or(0, |pairs| pairs.iter().map(|(name, value)| name.len() + value.len()).sum())
}

/// Decompresses a body as gzip and as zstd: the input itself, and valid headers followed by the
/// input. Returns the size of the output in bytes.
#[must_use]
pub fn compressed(bytes: &[u8]) -> usize {
    let gzip = [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", bytes].concat();
    let zstd = [b"\x28\xb5\x2f\xfd\x00\x58", bytes].concat();
    let bodies =
        [("gzip", bytes.to_vec()), ("gzip", gzip), ("zstd", bytes.to_vec()), ("zstd", zstd)];
    let size = |(encoding, body): (&'static str, Vec<u8>)| {
        let headers = headers(header::CONTENT_ENCODING, encoding);
        let content = BodyReader::open(&headers, Body::from(body), MOST_BYTES).ok()?;
        Some(block_on(content.read(PATIENCE)).ok()?.len())
    };
    bodies.into_iter().filter_map(size).max().unwrap_or_default()
}

/// Compiles `schema` and validates `value`. Returns the size of the violations in bytes.
#[must_use]
pub fn schema(bytes: &[u8]) -> usize {
    let Ok(input) = serde_json::from_slice::<Json>(bytes) else { return 0 };
    let Ok(schema) = CompiledSchema::new(input["schema"].clone()) else { return 0 };
    let (violations, _) = schema.violations(&input["value"], 100);
    violations.iter().map(|one| one.pointer.len() + one.message.len()).sum()
}

/// Parses a configuration file. Returns the size of the error text in bytes.
#[must_use]
pub fn config(bytes: &[u8]) -> usize {
    let Ok(file) = tempfile::NamedTempFile::new() else { return 0 };
    if std::fs::write(file.path(), bytes).is_err() {
        return 0;
    }
    let file = Some(file.path().to_owned());
    let source = ConfigSources { file, without_environment: true, ..ConfigSources::default() };
    Config::load(&source).map_or_else(|error| error.to_string().len(), |_| 0)
}
