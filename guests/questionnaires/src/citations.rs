//! Citations: the evidence or audit that supports an answer, and whether it is still current.

use std::collections::BTreeMap;

use area_sdk::Scope;
use area_sdk::prelude::*;
use area_shared::evidence::EvidenceRecord;

/// Days after which unconfirmed evidence is stale.
pub(crate) const FRESH_DAYS: i64 = 90;

/// A citation in responses.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Citation {
    /// Of the newest cited evidence; null if only an audit is cited.
    content_sha256: Option<String>,
    evidence_ids: Vec<Uuid>,
    /// Time at which the newest evidence was observed, or the audit completed.
    observed_at: Timestamp,
    quote: Option<String>,
    report_id: Option<Uuid>,
    /// Version of the audit when it was cited.
    report_revision: Option<u64>,
    /// Subject of the evidence, or the audited repository.
    source_key: String,
    stale: bool,
    status: CitationStatus,
    title: String,
    warnings: Vec<String>,
}

/// Status of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CitationStatus {
    /// It is the latest and not stale.
    Current,
    /// It was not confirmed for 90 days.
    Aged,
    /// Newer evidence or a newer audit has other content.
    Superseded,
}

/// Support of an answer by its sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerBasis {
    /// It has sources, and all are current.
    Supported,
    /// Some sources are current.
    Partial,
    /// No source is current, or there are none.
    Unsupported,
}

/// A stored citation.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredCitation {
    pub(crate) questionnaire_id: Uuid,
    pub(crate) question_id: Uuid,
    pub(crate) position: u32,
    pub(crate) evidence_ids: Vec<Uuid>,
    /// Kind of the evidence; evidence of other kinds does not affect the citation.
    pub(crate) kind: Option<String>,
    pub(crate) report_id: Option<Uuid>,
    pub(crate) report_revision: Option<u64>,
    /// Repository of the audit.
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) source_key: String,
    pub(crate) content_sha256: Option<String>,
    pub(crate) observed_at: Timestamp,
    /// Time of the last confirmation.
    pub(crate) confirmed_at: Timestamp,
    pub(crate) superseded_at: Option<Timestamp>,
    /// Time of the last comparison with new evidence.
    pub(crate) looked_at: Timestamp,
    pub(crate) quote: Option<String>,
    /// Whether the evidence's summary contains the quote; null without a quote.
    pub(crate) quote_found: Option<bool>,
    pub(crate) title: String,
}

impl Document for StoredCitation {
    const COLLECTION: &'static str = "citations";
}

impl StoredCitation {
    /// Updates the citation for newer evidence on the same subject.
    pub(crate) fn review(&mut self, newer: &EvidenceRecord) {
        let same_kind = self.kind.as_deref() == Some(newer.kind.as_str());
        if !same_kind || newer.observed_at <= self.observed_at {
            return;
        }
        if self.content_sha256.as_deref() == Some(newer.content_sha256.as_str()) {
            self.confirmed_at = self.confirmed_at.max(newer.observed_at);
        } else if self.superseded_at.is_none() {
            self.superseded_at = Some(newer.observed_at);
        }
    }

    /// Supersedes the citation by a newer completed audit of the repository.
    pub(crate) fn supersede_report(&mut self, newer: Uuid, at: Timestamp) {
        if self.report_id.is_some_and(|report| report != newer) && self.superseded_at.is_none() {
            self.superseded_at = Some(at);
        }
    }

    /// Records a comparison with all evidence at this time.
    pub(crate) fn looked(&mut self, now: Timestamp) {
        self.looked_at = now;
    }

    fn status(&self, now: Timestamp) -> CitationStatus {
        if self.superseded_at.is_some() {
            CitationStatus::Superseded
        } else if now.seconds_since(self.confirmed_at) > FRESH_DAYS * 86_400 {
            CitationStatus::Aged
        } else {
            CitationStatus::Current
        }
    }

    fn warnings(&self, now: Timestamp) -> Vec<String> {
        let mut warnings = Vec::new();
        match self.status(now) {
            CitationStatus::Current => {}
            CitationStatus::Aged => warnings.push(format!(
                "Last confirmed {} days ago; a source is stale after {FRESH_DAYS}.",
                now.seconds_since(self.confirmed_at) / 86_400
            )),
            CitationStatus::Superseded if self.report_id.is_some() => {
                warnings.push("A newer source on the same subject exists: cite that.".to_owned());
            }
            CitationStatus::Superseded => {
                warnings.push("Newer evidence on the same subject has other content.".to_owned());
            }
        }
        if self.quote_found == Some(false) {
            warnings.push(
                "The quote is not in the evidence's summary; look it up in the source.".to_owned(),
            );
        }
        warnings
    }

    fn view(self, now: Timestamp) -> Citation {
        let status = self.status(now);
        Citation {
            stale: status != CitationStatus::Current,
            status,
            warnings: self.warnings(now),
            content_sha256: self.content_sha256,
            evidence_ids: self.evidence_ids,
            observed_at: self.observed_at,
            quote: self.quote,
            report_id: self.report_id,
            report_revision: self.report_revision,
            source_key: self.source_key,
            title: self.title,
        }
    }
}

impl AnswerBasis {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Partial => "partial",
            Self::Unsupported => "unsupported",
        }
    }

    /// Returns the support that these citations give an answer.
    pub(crate) fn of(citations: &[Citation]) -> Self {
        let stale = citations.iter().filter(|citation| citation.stale).count();
        match stale {
            0 if !citations.is_empty() => Self::Supported,
            some if some < citations.len() => Self::Partial,
            _ => Self::Unsupported,
        }
    }
}

/// Returns the citations of some questions, by question, in order.
pub(crate) fn of(scope: &Scope, questions: &[Uuid]) -> Result<BTreeMap<Uuid, Vec<Citation>>> {
    let mut found: BTreeMap<Uuid, Vec<Citation>> = BTreeMap::new();
    if questions.is_empty() {
        return Ok(found);
    }
    let stored = scope.documents::<StoredCitation>().query();
    let stored = stored.one_of("question_id", questions.iter().copied());
    for citation in stored.ascending("position").limit(1000).list()? {
        let question = citation.question_id;
        found.entry(question).or_default().push(citation.value.view(scope.now()));
    }
    Ok(found)
}

/// Returns the citations of one question.
pub(crate) fn of_one(scope: &Scope, question: Uuid) -> Result<Vec<Citation>> {
    Ok(of(scope, &[question])?.remove(&question).unwrap_or_default())
}

/// Deletes the citations of a question.
pub(crate) fn forget(scope: &Scope, question: Uuid) -> Result<()> {
    let stored = scope.documents::<StoredCitation>().query().equals("question_id", question);
    stored.limit(1000).delete_page()?;
    Ok(())
}

impl Citation {
    /// Returns title and subject of the source.
    pub(crate) fn label(&self) -> String {
        format!("{} ({})", self.title, self.source_key)
    }
}
