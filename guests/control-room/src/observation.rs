//! An observation: one result of one file, normalised, identified, and ready to
//! be matched with the findings that are kept.

use area_sdk::prelude::*;

use crate::severity::Rating;
use crate::similarity::Sketch;

/// Places of one finding that are kept.
pub(crate) const MOST_LOCATIONS: usize = 10;

/// Where something was seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Place {
    /// Within the repository.
    pub(crate) path: Option<String>,
    pub(crate) start_line: Option<i64>,
    pub(crate) start_column: Option<i64>,
    pub(crate) end_line: Option<i64>,
    pub(crate) end_column: Option<i64>,
    /// A function, a class, a package.
    pub(crate) logical_name: Option<String>,
}

/// A tool that saw it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SourceTool {
    pub(crate) rule_id: String,
    pub(crate) tool: String,
    pub(crate) version: Option<String>,
}

/// What a scan says of one finding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Observation {
    /// By `finding-v1`.
    pub(crate) identity: String,
    pub(crate) source: SourceTool,
    pub(crate) source_family: SourceFamily,
    pub(crate) rule_family: String,
    pub(crate) title: String,
    pub(crate) rating: Rating,
    pub(crate) locations: Vec<Place>,
    pub(crate) purl: Option<String>,
    /// Why the scan itself does not count it, where it does not.
    pub(crate) suppressed: Option<String>,
    pub(crate) sketch: Sketch,
    /// The revision that was scanned, where the file says.
    pub(crate) revision: Option<String>,
}

/// What kind of source a finding comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SourceFamily {
    /// A scanner's file.
    Scanner,
    /// A signed evidence record.
    Evidence,
}

impl Observation {
    /// The paths it was seen in, each once.
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
