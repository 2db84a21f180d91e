//! Configuration of recordings of calls.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which calls of areas are recorded: their input, their host calls with
/// results, and their outcome. A recording contains no secrets but does contain
/// tenants' data. Reloaded at SIGHUP, except `dir`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecordConfig {
    /// Record every request and job that ends in a fault of an area's code.
    pub faults: bool,
    /// Percentage of requests that are recorded whatever their outcome.
    pub percent: f64,
    /// Folder of the recordings; not set: `recordings` in the data folder. The
    /// folder and its files are readable by this user only.
    pub dir: Option<PathBuf>,
    /// Number of recordings that are kept; beyond it, the oldest are deleted.
    pub max_files: u32,
    /// Total bytes of recordings that are kept; beyond it, the oldest are
    /// deleted.
    pub max_total_bytes: u64,
    /// Largest recording of one call, in bytes; a larger call is not recorded.
    /// Each running call may use this much memory for its recording.
    pub max_bytes: u64,
}

impl Default for RecordConfig {
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

impl RecordConfig {
    /// Returns whether any call is recorded.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.faults || self.percent > 0.0
    }
}
