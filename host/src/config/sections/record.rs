//! Which calls of areas are written down.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which calls of areas are written down: what each saw, of the host too, and
/// what came of it. No secret is in a recording, but tenants' data is. Read
/// again at SIGHUP, but for `dir`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Record {
    /// Keep every request and job that ends in a fault of an area's code.
    pub faults: bool,
    /// Keep so many of 100 requests, however they end.
    pub percent: f64,
    /// Where they are kept; not set: `recordings` in the data folder. The
    /// folder is made private, and so is each file.
    pub dir: Option<PathBuf>,
    /// Recordings that are kept; of more, the oldest go.
    pub max_files: u32,
    /// Bytes of all recordings; of more, the oldest go.
    pub max_total_bytes: u64,
    /// Bytes of one call; of one that saw and said more there is no recording.
    /// As much memory may be used by each call that runs.
    pub max_bytes: u64,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            faults: false,
            percent: 0.0,
            dir: None,
            max_files: 1_000,
            max_total_bytes: 256 << 20,
            max_bytes: 4 << 20,
        }
    }
}

impl Record {
    /// Whether anything is kept.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.faults || self.percent > 0.0
    }
}
