//! Citations: the evidence or audit that supports an answer, and whether it is still current.

use std::collections::BTreeMap;

use area_sdk::Scope;
use area_sdk::prelude::*;
use area_shared::evidence::EvidenceRecord;

/// Number of days after which evidence without confirmation counts as stale.
pub(crate) const FRESH_DAYS: i64 = 90;

/// A citation: evidence or an audit that supports an answer.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Citation {
    /// Lower-case hex SHA-256 of the newest cited evidence's content; null if only an audit is
    /// cited.
    content_sha256: Option<String>,
    evidence_ids: Vec<Uuid>,
    /// Time at which the newest cited evidence was observed, or the audit was completed.
    observed_at: Timestamp,
    quote: Option<String>,
    report_id: Option<Uuid>,
    /// Version of the audit's document at the time of the citation; null without an audit.
    report_revision: Option<u64>,
    /// Subject of the cited evidence; otherwise the id of the audited repository.
    source_key: String,
    stale: bool,
    status: CitationStatus,
    title: String,
    warnings: Vec<String>,
}

/// Status of a citation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CitationStatus {
    /// The cited source is the latest one and was confirmed within 90 days.
    Current,
    /// The cited source was not confirmed for 90 days.
    Aged,
    /// Newer evidence has other content, or the repository has a newer audit.
    Superseded,
}

/// How well current sources support an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "AnswerBasis")]
pub(crate) enum AnswerSupport {
    /// The answer has citations, and all are current.
    Supported,
    /// Some citations of the answer are current.
    Partial,
    /// No citation of the answer is current, or it has none.
    Unsupported,
}

/// A stored citation.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredCitation {
    /// Whether this is about a further subject or kind of the evidence of the citation with the
    /// same position. Former versions stored only the newest record's subject and kind.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_further: bool,
    pub(crate) questionnaire_id: Uuid,
    pub(crate) question_id: Uuid,
    pub(crate) position: u32,
    pub(crate) evidence_ids: Vec<Uuid>,
    /// Kind of the cited evidence. Only newer evidence of this kind confirms or supersedes the
    /// citation.
    pub(crate) kind: Option<String>,
    pub(crate) report_id: Option<Uuid>,
    pub(crate) report_revision: Option<u64>,
    /// Id of the repository of the cited audit.
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) source_key: String,
    pub(crate) content_sha256: Option<String>,
    pub(crate) observed_at: Timestamp,
    /// Time at which evidence last confirmed the content.
    pub(crate) confirmed_at: Timestamp,
    /// Time at which an audit superseded the cited one. Former versions also stored here when other
    /// evidence superseded the cited one.
    pub(crate) superseded_at: Option<Timestamp>,
    /// Time at which the newest evidence with other content was observed; null if the cited content
    /// was confirmed after it.
    #[serde(default)]
    pub(crate) other_content_at: Option<Timestamp>,
    /// Time of the citation. Comparisons with newer sources page in this order. Former versions
    /// also changed it at each comparison.
    pub(crate) looked_at: Timestamp,
    pub(crate) quote: Option<String>,
    /// Whether the evidence's summary contains the quote; null without a quote.
    pub(crate) quote_found: Option<bool>,
    pub(crate) title: String,
}

document!(StoredCitation, "citations");

impl StoredCitation {
    /// Confirms or supersedes the citation, if the record is newer and of the same kind. Records
    /// may arrive in another order than they were observed in; the one observed last counts.
    pub(crate) fn review(&mut self, newer: &EvidenceRecord) {
        let same_kind = self.kind.as_deref() == Some(newer.kind.as_str());
        if !same_kind || newer.observed_at <= self.observed_at {
            return;
        }
        if self.content_sha256.as_deref() == Some(newer.content_sha256.as_str()) {
            self.confirm(newer.observed_at);
        } else if newer.observed_at >= self.confirmed_at {
            self.other_content_at = self.other_content_at.max(Some(newer.observed_at));
        }
    }

    /// Stores that evidence confirmed the content at this time. Evidence with other content that
    /// was observed before no longer supersedes the citation.
    fn confirm(&mut self, at: Timestamp) {
        self.confirmed_at = self.confirmed_at.max(at);
        let confirmed_at = self.confirmed_at;
        let lasts = |other: &Timestamp| *other >= confirmed_at;
        self.other_content_at = self.other_content_at.filter(lasts);
        if self.report_id.is_none() {
            self.superseded_at = self.superseded_at.filter(lasts);
        }
    }

    /// Supersedes the citation, if it cites another audit than the newer one.
    pub(crate) fn supersede_report(&mut self, newer: Uuid, at: Timestamp) {
        if self.report_id.is_some_and(|report| report != newer) && self.superseded_at.is_none() {
            self.superseded_at = Some(at);
        }
    }

    /// Merges the state of a further subject of the citation: the worse one counts.
    fn merge(&mut self, further: &Self) {
        self.confirmed_at = self.confirmed_at.min(further.confirmed_at);
        self.other_content_at = self.other_content_at.max(further.other_content_at);
    }

    fn status(&self, now: Timestamp) -> CitationStatus {
        if self.superseded_at.or(self.other_content_at).is_some() {
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

impl AnswerSupport {
    /// Returns how well the current ones of these citations support an answer.
    pub(crate) fn of(citations: &[Citation]) -> Self {
        let stale = citations.iter().filter(|citation| citation.stale).count();
        match stale {
            0 if !citations.is_empty() => Self::Supported,
            some if some < citations.len() => Self::Partial,
            _ => Self::Unsupported,
        }
    }
}

/// Returns the citations of several questions by question, in the order of their positions.
pub(crate) fn of(scope: &Scope, questions: &[Uuid]) -> Result<BTreeMap<Uuid, Vec<Citation>>> {
    let mut found: BTreeMap<Uuid, Vec<Citation>> = BTreeMap::new();
    if questions.is_empty() {
        return Ok(found);
    }
    let stored = scope.documents::<StoredCitation>().query();
    let stored = stored.one_of("question_id", questions.iter().copied());
    let all: Result<Vec<_>, _> = stored.ascending("position").limit(1000).all().collect();
    let place = |one: &StoredCitation| (one.question_id, one.position);
    let (further, citations): (Vec<_>, Vec<_>) =
        all?.into_iter().map(|citation| citation.value).partition(|one| one.is_further);
    let mut merged: BTreeMap<_, Vec<StoredCitation>> = BTreeMap::new();
    further.into_iter().for_each(|one| merged.entry(place(&one)).or_default().push(one));
    for mut citation in citations {
        let further = merged.get(&place(&citation));
        further.into_iter().flatten().for_each(|one| citation.merge(one));
        found.entry(citation.question_id).or_default().push(citation.view(scope.now()));
    }
    Ok(found)
}

/// Returns the citations of one question's answer, in the order of their positions.
pub(crate) fn of_one(scope: &Scope, question: Uuid) -> Result<Vec<Citation>> {
    Ok(of(scope, &[question])?.remove(&question).unwrap_or_default())
}

/// Deletes the citations of a question's answer.
pub(crate) fn forget(scope: &Scope, question: Uuid) -> Result<()> {
    let stored = scope.documents::<StoredCitation>().query().equals("question_id", question);
    stored.limit(1000).delete_page()?;
    Ok(())
}

impl Citation {
    /// Returns title and subject of the cited source as one text: "title (subject)".
    pub(crate) fn label(&self) -> String {
        format!("{} ({})", self.title, self.source_key)
    }
}
