//! An observation: one result of a file, or one evidence record, normalized and with an identity,
//! to be matched with stored findings.

use area_sdk::prelude::*;

use crate::identity::ResultKey;
use crate::sarif::is_absolute;
use crate::severity::Rating;
use crate::similarity::TextFingerprint;

/// Maximum number of locations that are stored with a finding.
pub(crate) const MOST_LOCATIONS: usize = 10;

/// A location of a finding. Lines and columns count from 1.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FindingLocation {
    /// Path of the file within the repository, or a URL.
    pub(crate) path: Option<String>,
    pub(crate) start_line: Option<i64>,
    pub(crate) start_column: Option<i64>,
    pub(crate) end_line: Option<i64>,
    pub(crate) end_column: Option<i64>,
    /// Name of the function, class or package at the location (`logicalLocation` in SARIF).
    pub(crate) logical_name: Option<String>,
}

/// A tool that reported a finding, with its version and the id of its rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SourceTool {
    pub(crate) rule_id: String,
    pub(crate) tool: String,
    pub(crate) version: Option<String>,
}

/// One result of a scan, or one evidence record, in the form in which it is matched with stored
/// findings.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct ResultObservation {
    /// Identity of the finding that is observed, by the algorithm `finding-v1`.
    pub(crate) identity: String,
    /// Identity that older versions of this area gave the result, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) former_identity: Option<String>,
    /// Key and number of the result among equal results, which may be in other files; `None` if the
    /// key is too large, and for evidence records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) equals: Option<ResultKeyWithOrdinal>,
    /// Weaker keys of the result: earlier scans may have written nothing for its own key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) weaker: Vec<ResultKeyWithOrdinal>,
    pub(crate) source: SourceTool,
    pub(crate) source_family: SourceKind,
    pub(crate) rule_family: String,
    pub(crate) title: String,
    pub(crate) rating: Rating,
    pub(crate) locations: Vec<FindingLocation>,
    pub(crate) purl: Option<String>,
    /// Text about why the scan suppresses the result; `None` if it is not suppressed.
    pub(crate) suppressed: Option<String>,
    pub(crate) sketch: TextFingerprint,
    /// Hash of the result's message, which distinguishes equal results; `None` for evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message_hash: Option<u32>,
    /// Revision of the code that was scanned; `None` if the file does not contain it.
    pub(crate) revision: Option<String>,
    /// Evidence record that is the finding itself; `None` for a result of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) record: Option<FindingEvidenceRecord>,
}

/// An evidence record that is a finding itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct FindingEvidenceRecord {
    pub(crate) evidence_id: Uuid,
    pub(crate) observed_at: Timestamp,
}

/// Key of a result, and the result's number among the results of the file with the same key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct ResultKeyWithOrdinal {
    pub(crate) key: ResultKey,
    pub(crate) ordinal: u64,
}

/// Kind of the source that reported a finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SourceFamily")]
pub(crate) enum SourceKind {
    /// An uploaded SARIF file of a scanner.
    Scanner,
    /// A signed evidence record.
    Evidence,
}

impl ResultObservation {
    /// Whether the path of the first location is absolute, and so not within the repository.
    pub(crate) fn is_outside(&self) -> bool {
        self.first_path().is_some_and(|path| is_absolute(path))
    }

    pub(crate) fn first_path(&self) -> Option<&String> {
        self.locations.first().and_then(|place| place.path.as_ref())
    }

    pub(crate) fn first_line(&self) -> Option<i64> {
        self.locations.first().and_then(|place| place.start_line)
    }

    /// Whether both observations are equal results, whose identities differ by their ordinals only.
    pub(crate) fn is_equal_to(&self, other: &Self) -> bool {
        let (Some(ours), Some(theirs)) = (&self.equals, &other.equals) else { return false };
        ours.key == theirs.key && self.source.rule_id == other.source.rule_id
    }

    /// Returns the paths of the observation's locations, without duplicates.
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
