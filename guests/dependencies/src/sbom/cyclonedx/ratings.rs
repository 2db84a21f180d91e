//! `ratings` of a CycloneDX vulnerability. Only the severity of the best rating is stored.

use area_sdk::prelude::*;

use crate::osv::SeverityBand;
use crate::reading::list;

/// Severity of the best rating of a vulnerability, with the part of the rating from which it was
/// read.
#[derive(Default)]
pub(super) struct BestRating(Option<(RatingPart, SeverityBand)>);

/// Part of a rating from which the severity is read, least precise first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RatingPart {
    Word,
    Score,
    /// CVSS vector, with the rank of its CVSS version.
    Vector(u8),
}

/// An item of `ratings` of a CycloneDX vulnerability. Members of other types than the standard's
/// are ignored.
#[derive(Deserialize)]
struct RatingItem {
    #[serde(default)]
    score: serde_json::Value,
    #[serde(default)]
    severity: serde_json::Value,
    #[serde(default)]
    method: serde_json::Value,
    #[serde(default)]
    vector: serde_json::Value,
}

impl<'de> Deserialize<'de> for BestRating {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        list::fold(deserializer, Self::default(), |ratings, _, item: RatingItem| {
            ratings.0 = ratings.0.max(item.rated());
            Ok(())
        })
    }
}

impl BestRating {
    /// Returns the severity of the vulnerability's best rating: that with the newest CVSS vector,
    /// otherwise with a CVSS score, otherwise with a word. Of several, the highest.
    pub(super) fn best(&self) -> Option<SeverityBand> {
        self.0.map(|(_, rating)| rating)
    }
}

impl RatingItem {
    fn rated(&self) -> Option<(RatingPart, SeverityBand)> {
        let vector = || SeverityBand::of_vector(self.vector.as_str()?);
        let vector = vector().map(|(version, rating)| (RatingPart::Vector(version), rating));
        let score = || Some((RatingPart::Score, SeverityBand::of_score(self.cvss_score()?)));
        let word = || Some((RatingPart::Word, SeverityBand::of_word(self.severity.as_str()?)?));
        vector.or_else(score).or_else(word)
    }

    /// Returns the CVSS score of the rating; `None` if the score is of another method than CVSS.
    fn cvss_score(&self) -> Option<f64> {
        let is_cvss = self.method.as_str().is_none_or(|method| method.starts_with("CVSS"));
        self.score.as_f64().filter(|_| is_cvss)
    }
}
