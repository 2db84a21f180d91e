//! Citations: which evidence, or which audit, an answer rests on, and whether
//! that is still the latest there is to say.

use std::collections::BTreeMap;

use area_sdk::Scope;
use area_sdk::prelude::*;

use crate::sources::Evidence;

/// Days after which evidence that nobody has confirmed is stale.
pub(crate) const FRESH_DAYS: i64 = 90;

/// A citation as the contract shows it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Citation {
    /// Of the newest evidence cited; null where only an audit is.
    content_sha256: Option<String>,
    evidence_ids: Vec<Uuid>,
    /// When the newest evidence was observed, or the audit completed.
    observed_at: Timestamp,
    quote: Option<String>,
    report_id: Option<Uuid>,
    /// The audit's version when it was cited.
    report_revision: Option<u64>,
    /// What the evidence is about, or the audited repository.
    source_key: String,
    stale: bool,
    status: CitationStatus,
    title: String,
    warnings: Vec<String>,
}

/// How a source stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CitationStatus {
    /// The latest there is, and not old.
    Current,
    /// Nobody has confirmed it for 90 days.
    Aged,
    /// Something newer says something else.
    Superseded,
}

/// What the sources of an answer amount to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerBasis {
    /// It has sources, and all of them are current.
    Supported,
    /// Some of its sources are current.
    Partial,
    /// None is, or it has none.
    Unsupported,
}

/// A citation as it is kept.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredCitation {
    pub(crate) questionnaire_id: Uuid,
    pub(crate) question_id: Uuid,
    pub(crate) position: u32,
    pub(crate) evidence_ids: Vec<Uuid>,
    /// The evidence's kind; news of another kind do not touch it.
    pub(crate) kind: Option<String>,
    pub(crate) report_id: Option<Uuid>,
    pub(crate) report_revision: Option<u64>,
    /// The audit's.
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) source_key: String,
    pub(crate) content_sha256: Option<String>,
    pub(crate) observed_at: Timestamp,
    /// When the same was last seen again.
    pub(crate) confirmed_at: Timestamp,
    pub(crate) superseded_at: Option<Timestamp>,
    /// When it was last held against what is new.
    pub(crate) looked_at: Timestamp,
    pub(crate) quote: Option<String>,
    /// Whether the evidence's own summary has the quote; null without one.
    pub(crate) quote_found: Option<bool>,
    pub(crate) title: String,
}

impl Document for StoredCitation {
    const COLLECTION: &'static str = "citations";
}

impl StoredCitation {
    /// Something newer about the same was seen.
    pub(crate) fn review(&mut self, newer: &Evidence) {
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

    /// A newer audit of the same repository was completed.
    pub(crate) fn supersede_report(&mut self, newer: Uuid, at: Timestamp) {
        if self.report_id.is_some_and(|report| report != newer) && self.superseded_at.is_none() {
            self.superseded_at = Some(at);
        }
    }

    /// Notes that it was held against everything there is at this moment.
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
                warnings.push("A newer source about the same is there: cite that.".to_owned());
            }
            CitationStatus::Superseded => {
                warnings.push("Newer evidence about the same says something else.".to_owned());
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

    /// What these citations make of an answer.
    pub(crate) fn of(citations: &[Citation]) -> Self {
        let stale = citations.iter().filter(|citation| citation.stale).count();
        match stale {
            0 if !citations.is_empty() => Self::Supported,
            some if some < citations.len() => Self::Partial,
            _ => Self::Unsupported,
        }
    }
}

/// The citations of some questions, by question, in their order.
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

/// The citations of one question.
pub(crate) fn of_one(scope: &Scope, question: Uuid) -> Result<Vec<Citation>> {
    Ok(of(scope, &[question])?.remove(&question).unwrap_or_default())
}

/// Forgets the citations of a question.
pub(crate) fn forget(scope: &Scope, question: Uuid) -> Result<()> {
    let stored = scope.documents::<StoredCitation>().query().equals("question_id", question);
    for citation in stored.limit(1000).list()? {
        scope.documents().delete(&citation)?;
    }
    Ok(())
}

impl Citation {
    /// What the source is called, and what it is about.
    pub(crate) fn label(&self) -> String {
        format!("{} ({})", self.title, self.source_key)
    }
}
