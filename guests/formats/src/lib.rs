//! Limits of uploaded content. The uploads area and the areas that import uploads use the same
//! limits, so that no upload is accepted and refused later.

pub mod nesting;
pub mod packing;
pub mod stream;
mod zstd;

/// Maximum size of uploaded content as sent (packed or not), in bytes.
pub const MAX_SENT_BYTES: u64 = 26_214_400;

/// Maximum size of content that is stored unpacked, in bytes. Larger content is stored as sent and
/// unpacked at each read.
pub const MAX_WHOLE_BYTES: u64 = 26_214_400;

/// Maximum unpacked size of a CycloneDX, SPDX or OSV document in bytes. They are parsed as a
/// stream.
pub const MAX_STREAM_BYTES: u64 = 268_435_456;

/// Maximum unpacked size of a SARIF log in bytes. It is parsed in memory.
pub const MAX_SARIF_BYTES: u64 = 67_108_864;
