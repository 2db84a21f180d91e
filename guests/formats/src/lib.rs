//! What uploads may hold and audits read. The uploads area accepts content by
//! these limits, and the areas that import it read it by the same ones, so
//! that nothing is accepted and refused later.

pub mod nesting;
pub mod packing;
pub mod stream;
mod zstd;

/// Largest content as it is sent, in bytes.
pub const MAX_SENT_BYTES: u64 = 26_214_400;

/// Largest content that is unpacked once and kept so, in bytes. What is larger
/// is kept as it was sent, and unpacked whenever it is read.
pub const MAX_WHOLE_BYTES: u64 = 26_214_400;

/// Largest CycloneDX, SPDX or OSV document once unpacked, in bytes: these are
/// read as a stream.
pub const MAX_STREAM_BYTES: u64 = 268_435_456;

/// Largest SARIF log once unpacked, in bytes: its readers hold it in memory.
pub const MAX_SARIF_BYTES: u64 = 67_108_864;
