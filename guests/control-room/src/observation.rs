//! An observation: one result of one file, normalized and identified, ready to be matched with
//! stored findings.

use area_sdk::prelude::*;

use crate::severity::Rating;
use crate::similarity::TextFingerprint;

/// Maximum number of stored locations of one finding.
pub(crate) const MOST_LOCATIONS: usize = 10;

/// Location of a finding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FindingLocation {
    /// Path within the repository.
    pub(crate) path: Option<String>,
    pub(crate) start_line: Option<i64>,
    pub(crate) start_column: Option<i64>,
    pub(crate) end_line: Option<i64>,
    pub(crate) end_column: Option<i64>,
    /// Name of a function, class or package.
    pub(crate) logical_name: Option<String>,
}

/// A tool that reported a finding.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SourceTool {
    pub(crate) rule_id: String,
    pub(crate) tool: String,
    pub(crate) version: Option<String>,
}

/// A scan's description of one finding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Observation {
    /// Identity by `finding-v1`.
    pub(crate) identity: String,
    pub(crate) source: SourceTool,
    pub(crate) source_family: SourceFamily,
    pub(crate) rule_family: String,
    pub(crate) title: String,
    pub(crate) rating: Rating,
    pub(crate) locations: Vec<FindingLocation>,
    pub(crate) purl: Option<String>,
    /// Why the scan suppresses it; `None` if it does not.
    pub(crate) suppressed: Option<String>,
    pub(crate) sketch: TextFingerprint,
    /// Scanned revision; `None` if the file names none.
    pub(crate) revision: Option<String>,
}

/// Kind of a finding's source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SourceFamily {
    /// A file of a scanner.
    Scanner,
    /// A signed evidence record.
    Evidence,
}

impl Observation {
    /// Returns the paths where it was found, without duplicates.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = Vec::new();
        for path in self.locations.iter().filter_map(|place| place.path.as_ref()) {
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        paths
    }
}
