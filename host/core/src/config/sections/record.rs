//! Configuration of recordings of calls.

use std::path::PathBuf;

use crate::config::section::section;

section! {
    /// Which calls of areas are recorded: their input, their host calls with
    /// results, and their outcome. A recording contains no secrets but does contain
    /// tenants' data. Reloaded at SIGHUP, except `dir`.
    pub struct RecordingsConfig {
        /// Record every request and job that ends in a fault of an area's code.
        pub faults: bool = false,
        /// Percentage of requests that are recorded whatever their outcome.
        pub percent: f64 = 0.0,
        /// Folder of the recordings; not set: `recordings` in the data folder. The
        /// folder and its files are readable by this user only.
        pub dir: Option<PathBuf>,
        /// Number of recordings that are kept; beyond it, the oldest are deleted.
        pub max_files: u32 = 1_000; min 1,
        /// Total bytes of recordings that are kept; beyond it, the oldest are
        /// deleted.
        pub max_total_bytes: u64 = 256 << 20,
        /// Largest recording of one call, in bytes; a larger call is not recorded.
        /// Each running call may use this much memory for its recording.
        pub max_bytes: u64 = 4 << 20,
    }
}

impl RecordingsConfig {
    /// Returns whether these settings record any call.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.faults || self.percent > 0.0
    }
}
