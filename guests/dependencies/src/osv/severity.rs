//! Severity of an advisory: from its CVSS vectors, otherwise from the word of its distribution or
//! database.

use area_sdk::prelude::*;
use cvss::Cvss;

use super::{Affected, Osv};

/// An item of `severity` in an OSV record.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Severity {
    /// Type of the severity's `score`: `CVSS_V2`, `CVSS_V3`, `CVSS_V4`, `Ubuntu`, …
    #[serde(default)]
    pub(crate) r#type: String,
    /// Severity of the advisory: a CVSS vector, or a word such as `medium`.
    #[serde(default)]
    pub(crate) score: String,
}

/// Severity bands of CVSS, to which other severity words are mapped.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Rating")]
pub(crate) enum SeverityBand {
    None,
    Low,
    Medium,
    High,
    Critical,
}

impl From<cvss::Severity> for SeverityBand {
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

impl SeverityBand {
    /// Returns the severity band of a CVSS vector, with the rank of its CVSS version: higher for
    /// newer ones. `None` if the vector is invalid.
    pub(crate) fn of_vector(text: &str) -> Option<(u8, Self)> {
        let vector: Cvss = text.parse().ok()?;
        Some((version_rank(&vector), vector.severity().into()))
    }

    /// Returns the severity band of a CVSS score.
    pub(crate) fn of_score(score: f64) -> Self {
        cvss::v3::Score::new(score).severity().into()
    }

    /// Returns the severity band of a word such as `MODERATE` in an advisory; `None` if the word is
    /// unknown.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "critical" => Self::Critical,
            "high" => Self::High,
            "moderate" | "medium" => Self::Medium,
            // Ubuntu's `negligible` is its lowest band, for theoretical vulnerabilities.
            "low" | "negligible" => Self::Low,
            "none" | "info" => Self::None,
            _ => return None,
        })
    }
}

/// Returns the rank of a vector's CVSS version: a number that is higher for newer versions.
fn version_rank(vector: &Cvss) -> u8 {
    match vector {
        Cvss::CvssV40(_) => 4,
        Cvss::CvssV31(_) => 3,
        Cvss::CvssV30(_) => 2,
        _ => 1,
    }
}

/// Returns the valid CVSS vector of the newest CVSS version among these items; `None` if there is
/// none.
fn vector(severities: &[Severity]) -> Option<Cvss> {
    let read = |severity: &Severity| severity.score.parse::<Cvss>().ok();
    severities.iter().filter_map(read).max_by_key(version_rank)
}

/// Returns the severity band of the distribution's word (type `Ubuntu`) among these items; `None`
/// if there is none.
fn word(severities: &[Severity]) -> Option<SeverityBand> {
    severities.iter().find_map(|severity| SeverityBand::of_word(&severity.score))
}

impl Affected {
    /// Returns the severity band of the advisory for this package: from the package's CVSS vector,
    /// otherwise from its distribution's word.
    pub(crate) fn rating(&self) -> Option<SeverityBand> {
        let vector = vector(&self.severity).map(|vector| vector.severity().into());
        vector.or_else(|| word(&self.severity))
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

    /// Returns the advisory's CVSS score as text with one decimal; `None` without a CVSS vector.
    pub(crate) fn cvss_score(&self) -> Option<String> {
        self.vector().map(|vector| format!("{:.1}", vector.score()))
    }

    /// Returns the severity band of the advisory: from the CVSS vector, otherwise from the
    /// distribution's word, otherwise from the database's word.
    pub(crate) fn rating(&self) -> Option<SeverityBand> {
        let of_database = self.database_specific.severity.as_str().unwrap_or_default();
        let vector = self.vector().map(|vector| vector.severity().into());
        vector
            .or_else(|| word(&self.severity))
            .or_else(|| self.affected.iter().filter_map(|affected| word(&affected.severity)).max())
            .or_else(|| SeverityBand::of_word(of_database))
    }
}
