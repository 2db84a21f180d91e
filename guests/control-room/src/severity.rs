//! Severity of a finding: from CVSS or `security-severity` if the scanner gives one, otherwise from
//! the scanner's own word, otherwise from the SARIF `level`.

use area_sdk::prelude::*;
use serde_json::{Map, Value};

use crate::text::clean;

/// A severity band of findings: that of the CVSS score; without a score, that of the scanner's word
/// or of the SARIF level.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// A CVSS score of 9.0 or higher; without a score, a word such as `critical`.
    Critical,
    /// A CVSS score from 7.0 to 8.9; without a score, a word such as `high` or the level `error`.
    High,
    /// A CVSS score from 4.0 to 6.9; without a score, a word such as `moderate` or the level
    /// `warning`.
    Medium,
    /// A CVSS score from 0.1 to 3.9; without a score, a word such as `minor` or the level `note`.
    Low,
    /// A CVSS score of 0.0; without a score, a word such as `info` or the level `none`.
    None,
}

impl Severity {
    pub(crate) const ALL: [Self; 5] =
        [Self::Critical, Self::High, Self::Medium, Self::Low, Self::None];

    /// Returns the severity band of a CVSS score, given in tenths.
    fn of_score(tenths: i64) -> Self {
        match tenths {
            90.. => Self::Critical,
            70.. => Self::High,
            40.. => Self::Medium,
            1.. => Self::Low,
            _ => Self::None,
        }
    }

    /// Returns the severity band of a result's SARIF `level`, ignoring case.
    fn of_level(level: &str) -> Self {
        match level.to_ascii_lowercase().as_str() {
            "error" => Self::High,
            "note" => Self::Low,
            "none" => Self::None,
            _ => Self::Medium,
        }
    }

    /// Returns the band of a scanner's word, for example `moderate`; `None` if the word is unknown.
    fn of_word(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "critical" | "blocker" => Self::Critical,
            "high" | "error" | "major" | "important" => Self::High,
            "medium" | "moderate" | "warning" => Self::Medium,
            "low" | "minor" | "note" | "recommendation" | "negligible" => Self::Low,
            "none" | "info" | "informational" | "information" => Self::None,
            _ => return None,
        })
    }

    /// Returns the next higher band; the severities `Critical` and `None` stay.
    pub(crate) fn raised(self) -> Self {
        match self {
            Self::Critical | Self::High => Self::Critical,
            Self::Medium => Self::High,
            Self::Low => Self::Medium,
            Self::None => Self::None,
        }
    }

    /// Returns the number of days within which a finding of this severity must be settled; `None`
    /// for severity `none`.
    pub(crate) fn sla_days(self) -> Option<i64> {
        match self {
            Self::Critical => Some(7),
            Self::High => Some(30),
            Self::Medium => Some(90),
            Self::Low => Some(120),
            Self::None => None,
        }
    }

    /// Returns the score, in tenths, that stands for the band in the risk of a finding without CVSS
    /// score.
    pub(crate) fn weight_tenths(self) -> i64 {
        match self {
            Self::Critical => 95,
            Self::High => 80,
            Self::Medium => 55,
            Self::Low => 20,
            Self::None => 0,
        }
    }
}

/// Source from which the severity of a finding was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SeveritySource {
    /// A CVSS score or vector of the result or its rule, or the property `security-severity`.
    Cvss,
    /// The scanner's own word, for example `HIGH`.
    Scanner,
    /// The SARIF `level` of the result.
    Level,
}

/// Severity of a finding, with its source and the CVSS score.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Rating {
    pub(crate) risk_severity: Severity,
    pub(crate) severity_source: SeveritySource,
    /// Severity of the result as the scanner writes it.
    pub(crate) scanner_severity: String,
    /// CVSS score of the result in tenths; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cvss_tenths: Option<i64>,
}

impl Rating {
    /// Rates a SARIF result: by the first CVSS score in `properties` (those of the result, then
    /// those of its rule), otherwise by the first severity word in them, otherwise by the SARIF
    /// level.
    pub(crate) fn of(properties: [&Map<String, Value>; 2], level: &str) -> Self {
        let word = properties.iter().find_map(|properties| scanner_word(properties));
        let score = properties.iter().find_map(|properties| score_tenths(properties));
        let (risk_severity, severity_source) = match (score, word) {
            (Some(score), _) => (Severity::of_score(score), SeveritySource::Cvss),
            (None, Some((_, severity))) => (severity, SeveritySource::Scanner),
            (None, None) => (Severity::of_level(level), SeveritySource::Level),
        };
        let scanner_severity = clean(word.map_or(level, |(word, _)| word), 50);
        Self { risk_severity, severity_source, scanner_severity, cvss_tenths: score }
    }

    /// Returns the finding's CVSS score in tenths; without one, the score that stands for the
    /// severity band.
    pub(crate) fn weight_tenths(&self) -> i64 {
        self.cvss_tenths.unwrap_or_else(|| self.risk_severity.weight_tenths())
    }
}

/// Names of SARIF properties with a CVSS score or vector, most specific first.
const SCORES: [&str; 12] = [
    "cvssv4_baseScore",
    "cvssv4_vector",
    "cvssv3_baseScore",
    "cvssv3_vector",
    "cvss",
    "cvssScore",
    "cvss_score",
    "cvssVector",
    "cvss_vector",
    "cvssv2_baseScore",
    "security-severity",
    "security_severity",
];

fn score_tenths(properties: &Map<String, Value>) -> Option<i64> {
    SCORES.iter().find_map(|&name| tenths(properties.get(name)?))
}

/// Parses a CVSS score from 0.0 to 10.0 and rounds it down to tenths.
#[expect(clippy::cast_possible_truncation, reason = "0 to 100")]
fn tenths(value: &Value) -> Option<i64> {
    let score = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => match text.trim().parse::<f64>() {
            Ok(score) => score,
            Err(_) => text.trim().parse::<cvss::Cvss>().ok()?.score(),
        },
        _ => return None,
    };
    // The nearest double of 8.2 may be slightly below it.
    (0.0..=10.0).contains(&score).then(|| (score * 10.0 + 1e-6).floor() as i64)
}

/// Names of SARIF properties with the scanner's own severity word.
const WORDS: [&str; 5] =
    ["severity", "issue_severity", "Severity", "problem.severity", "problem_severity"];

/// Returns the first known severity word in the properties, and its band.
fn scanner_word(properties: &Map<String, Value>) -> Option<(&str, Severity)> {
    let said = WORDS.iter().filter_map(|&name| properties.get(name)?.as_str());
    let tags = properties.get("tags").and_then(Value::as_array).into_iter().flatten();
    // In tags, only words that are unambiguous count as a severity.
    let tags = tags.filter_map(Value::as_str).filter(|tag| {
        ["critical", "high", "medium", "low"].iter().any(|word| tag.eq_ignore_ascii_case(word))
    });
    said.chain(tags).find_map(|word| Some((word, Severity::of_word(word.trim())?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "called with json!")]
    fn rate(result: Value, rule: Value, level: &str) -> (Severity, SeveritySource, String) {
        let map = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let rating = Rating::of([&map(&result), &map(&rule)], level);
        (rating.risk_severity, rating.severity_source, rating.scanner_severity)
    }

    #[test]
    fn the_bands_are_those_of_cvss() {
        for (score, severity) in [
            ("10.0", Severity::Critical),
            ("9.0", Severity::Critical),
            ("8.9", Severity::High),
            ("7.0", Severity::High),
            ("6.9", Severity::Medium),
            ("4.0", Severity::Medium),
            ("3.9", Severity::Low),
            ("0.1", Severity::Low),
            ("0.0", Severity::None),
        ] {
            let rule = json!({ "security-severity": score });
            let expected = (severity, SeveritySource::Cvss, "error".to_owned());
            assert_eq!(rate(json!({}), rule, "error"), expected, "{score}");
        }
    }

    #[test]
    fn cvss_comes_before_the_scanner_s_word_and_that_before_the_level() {
        let vector = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H";
        let (severity, source, _) = rate(json!({ "cvss": vector }), json!({}), "note");
        assert_eq!((severity, source), (Severity::Critical, SeveritySource::Cvss));

        let bandit = rate(json!({ "issue_severity": "LOW" }), json!({}), "error");
        assert_eq!(bandit, (Severity::Low, SeveritySource::Scanner, "LOW".to_owned()));
        let tagged = json!({ "tags": ["vulnerability", "CRITICAL", "curl"] });
        let trivy = rate(json!({}), tagged, "error");
        assert_eq!(trivy, (Severity::Critical, SeveritySource::Scanner, "CRITICAL".to_owned()));
        let codeql = rate(json!({}), json!({ "problem.severity": "recommendation" }), "error");
        assert_eq!((codeql.0, codeql.1), (Severity::Low, SeveritySource::Scanner));

        let level = rate(json!({ "severity": "odd" }), json!({ "tags": "x" }), "note");
        assert_eq!(level, (Severity::Low, SeveritySource::Level, "note".to_owned()));
        let (severity, ..) = rate(json!({}), json!({}), "Error");
        assert_eq!(severity, Severity::High);
    }

    #[test]
    fn what_is_no_score_is_not_taken_for_one() {
        for odd in [json!("-1"), json!(10.1), json!("NaN"), json!("inf"), json!(null), json!([9])] {
            let (_, source, _) = rate(json!({ "security-severity": odd }), json!({}), "error");
            assert_eq!(source, SeveritySource::Level);
        }
        assert_eq!(tenths(&json!(8.2)), Some(82));
        assert_eq!(tenths(&json!("8.99")), Some(89));
    }
}
