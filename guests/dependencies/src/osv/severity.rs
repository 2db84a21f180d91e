//! Severity of an advisory: from its CVSS vectors, otherwise from the word of its database.

use area_sdk::prelude::*;
use cvss::Cvss;

use super::{Affected, Osv};

/// An item of `severity` in an OSV record.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Severity {
    /// Type of the score: `CVSS_V2`, `CVSS_V3`, `CVSS_V4`, `Ubuntu`, …
    #[serde(default)]
    pub(crate) r#type: String,
    /// A CVSS vector, or a word.
    #[serde(default)]
    pub(crate) score: String,
}

/// Severity bands of CVSS.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rating {
    None,
    Low,
    Medium,
    High,
    Critical,
}

impl From<cvss::Severity> for Rating {
    fn from(severity: cvss::Severity) -> Self {
        match severity {
            cvss::Severity::None => Self::None,
            cvss::Severity::Low => Self::Low,
            cvss::Severity::Medium => Self::Medium,
            cvss::Severity::High => Self::High,
            cvss::Severity::Critical => Self::Critical,
        }
    }
}

/// Returns the valid vector with the newest CVSS version; `None` if there is none.
fn vector(severities: &[Severity]) -> Option<Cvss> {
    let read = |severity: &Severity| severity.score.parse::<Cvss>().ok();
    severities.iter().filter_map(read).max_by_key(|vector| match vector {
        Cvss::CvssV40(_) => 4,
        Cvss::CvssV31(_) => 3,
        Cvss::CvssV30(_) => 2,
        _ => 1,
    })
}

impl Affected {
    /// Returns the severity band of this package; `None` if the entry has no CVSS vector.
    pub(crate) fn rating(&self) -> Option<Rating> {
        vector(&self.severity).map(|vector| vector.severity().into())
    }
}

impl Osv {
    /// Returns the advisory's own CVSS vector; without one, that of its packages with the highest
    /// score.
    fn vector(&self) -> Option<Cvss> {
        let of_packages = self.affected.iter().filter_map(|affected| vector(&affected.severity));
        let worst = |one: &Cvss, other: &Cvss| one.score().total_cmp(&other.score());
        vector(&self.severity).or_else(|| of_packages.max_by(worst))
    }

    /// Returns the CVSS score with one decimal; `None` without a vector.
    pub(crate) fn cvss_score(&self) -> Option<String> {
        self.vector().map(|vector| format!("{:.1}", vector.score()))
    }

    /// Returns the severity band: from the CVSS vector, otherwise from the database's word.
    pub(crate) fn rating(&self) -> Option<Rating> {
        let word = self.database_specific.severity.as_str().unwrap_or_default();
        self.vector().map(|vector| vector.severity().into()).or_else(|| rating_of(word))
    }
}

fn rating_of(word: &str) -> Option<Rating> {
    Some(match word.to_ascii_lowercase().as_str() {
        "critical" => Rating::Critical,
        "high" => Rating::High,
        "moderate" | "medium" => Rating::Medium,
        "low" => Rating::Low,
        _ => return None,
    })
}
