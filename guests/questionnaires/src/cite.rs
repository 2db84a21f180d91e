//! Creates citations. Reads every cited source and stores data of the source, not of the client.

use std::collections::BTreeSet;

use area_sdk::Scope;
use area_sdk::prelude::*;
use area_sdk::text::{first_line, truncate_chars};
use area_shared::evidence::EvidenceRecord;

use crate::citations::StoredCitation;
use crate::sources::{self, Audit};

/// Maximum length of a title derived from a record's summary, in characters.
const MOST_TITLE_CHARACTERS: usize = 200;

/// A request to cite evidence records, an audit, or both.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewCitation {
    /// Ids of evidence records of this workspace.
    #[serde(default)]
    #[schemars(length(max = 20))]
    evidence_ids: Vec<Uuid>,
    /// Id of a completed audit of this workspace.
    report_id: Option<Uuid>,
    /// Literal quote from the text of the cited source.
    #[schemars(length(min = 1, max = 1000))]
    quote: Option<String>,
    /// Title of the citation; by default derived from the source.
    #[schemars(length(min = 1, max = 200))]
    title: Option<String>,
}

/// The evidence records and the audit that a new citation cites.
struct CitedEvidenceAndAudit {
    /// Cited evidence records, newest first.
    evidence: Vec<Stored<EvidenceRecord>>,
    report: Option<(Stored<Audit>, Timestamp)>,
}

/// Creates the citations of an answer.
pub(crate) fn cite(
    ctx: &Ctx,
    questionnaire_id: Uuid,
    question_id: Uuid,
    new: Vec<NewCitation>,
) -> Result<()> {
    let mut made = Vec::with_capacity(new.len());
    for (position, new) in (0_u32..).zip(new) {
        let sources = look_up(ctx, &format!("/citations/{position}"), &new)?;
        let mut citation = kept(ctx, &new, &sources)?;
        citation.position = position;
        citation.questionnaire_id = questionnaire_id;
        citation.question_id = question_id;
        let further = further(&citation, &sources.evidence);
        for mut citation in std::iter::once(citation).chain(further) {
            hold_against_news(ctx, &mut citation)?;
            made.push((ctx.new_id(), citation));
        }
    }
    ctx.documents().create_all(made.iter().map(|(id, citation)| (id, citation)))?;
    Ok(())
}

fn look_up(ctx: &Ctx, pointer: &str, new: &NewCitation) -> Result<CitedEvidenceAndAudit> {
    if new.evidence_ids.is_empty() && new.report_id.is_none() {
        return Err(Problem::validation(pointer, "names neither evidence nor a report")
            .hint("Give evidence_ids, report_id, or both."));
    }
    let mut evidence = ctx.documents::<EvidenceRecord>().get_many(&new.evidence_ids)?;
    let known = |id: &Uuid| evidence.iter().any(|record| record.uuid() == *id);
    if let Some(unknown) = new.evidence_ids.iter().position(|id| !known(id)) {
        let pointer = format!("{pointer}/evidence_ids/{unknown}");
        return Err(Problem::validation(pointer, "is not evidence of this workspace")
            .hint("Cite evidence from an accepted envelope."));
    }
    evidence.sort_by_key(|record| std::cmp::Reverse(record.observed_at));
    let report = match new.report_id {
        None => None,
        Some(id) => Some(sources::completed_audit(ctx, id)?.ok_or_else(|| {
            Problem::validation(
                format!("{pointer}/report_id"),
                "is not a completed audit of this workspace",
            )
        })?),
    };
    Ok(CitedEvidenceAndAudit { evidence, report })
}

/// Returns the citation to store. The caller sets its question and position.
fn kept(ctx: &Ctx, new: &NewCitation, sources: &CitedEvidenceAndAudit) -> Result<StoredCitation> {
    let newest = sources.evidence.first();
    let report = sources.report.as_ref();
    let audited = report.map(|(audit, _)| audit.repository_id);
    let observed_at = newest.map(|record| record.observed_at);
    let observed_at = observed_at.or(report.map(|(_, at)| *at)).unwrap_or(ctx.now());
    let mut evidence_ids = new.evidence_ids.clone();
    evidence_ids.sort_unstable();
    evidence_ids.dedup();
    Ok(StoredCitation {
        is_further: false,
        questionnaire_id: Uuid::nil(),
        question_id: Uuid::nil(),
        position: 0,
        evidence_ids,
        kind: newest.map(|record| record.kind.clone()),
        report_id: new.report_id,
        report_revision: report.map(|(audit, _)| audit.version),
        repository_id: audited,
        source_key: match (newest, audited) {
            (Some(record), _) => record.subject_key.clone(),
            (None, repository) => repository.unwrap_or_default().to_string(),
        },
        content_sha256: newest.map(|record| record.content_sha256.clone()),
        observed_at,
        confirmed_at: observed_at,
        superseded_at: None,
        other_content_at: None,
        looked_at: ctx.now(),
        quote: new.quote.clone(),
        quote_found: found(new.quote.as_deref(), &sources.evidence),
        title: title(ctx, new, sources)?,
    })
}

/// Returns what to store for each further subject and kind of a citation's evidence, so that newer
/// evidence about it is found too. `evidence` is sorted newest first.
fn further(citation: &StoredCitation, evidence: &[Stored<EvidenceRecord>]) -> Vec<StoredCitation> {
    let mut seen = BTreeSet::new();
    let newest = evidence.iter().filter(|record| seen.insert((&record.subject_key, &record.kind)));
    let others = newest.skip(1).map(|record| StoredCitation {
        is_further: true,
        kind: Some(record.kind.clone()),
        report_id: None,
        repository_id: None,
        source_key: record.subject_key.clone(),
        content_sha256: Some(record.content_sha256.clone()),
        observed_at: record.observed_at,
        confirmed_at: record.observed_at,
        ..citation.clone()
    });
    others.collect()
}

/// Returns the title from the client, or one derived from the source.
fn title(ctx: &Ctx, new: &NewCitation, sources: &CitedEvidenceAndAudit) -> Result<String> {
    if let Some(title) = &new.title {
        return Ok(title.clone());
    }
    if let Some(record) = sources.evidence.first() {
        let line = first_line(&record.summary);
        let text = if line.is_empty() { &record.source_ref } else { line };
        return Ok(truncate_chars(text, MOST_TITLE_CHARACTERS).to_owned());
    }
    let Some((audit, _)) = &sources.report else { return Ok(String::new()) };
    let name = sources::repository_name(ctx, audit.repository_id)?;
    Ok(match &audit.commit_sha {
        Some(commit) => format!("Audit of {name} at {commit}"),
        None => format!("Audit of {name}"),
    })
}

/// Whether the summary of a cited evidence record contains the quote, ignoring white space; `None`
/// without a quote or evidence.
fn found(quote: Option<&str>, evidence: &[Stored<EvidenceRecord>]) -> Option<bool> {
    let folded = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let quote = folded(quote?);
    let said = |record: &Stored<EvidenceRecord>| folded(&record.summary).contains(&quote);
    (!evidence.is_empty()).then(|| evidence.iter().any(said))
}

/// Updates a new citation if a newer evidence record or audit already exists.
fn hold_against_news(scope: &Scope, citation: &mut StoredCitation) -> Result<()> {
    if let Some(kind) = citation.kind.clone() {
        let latest = sources::latest_evidence(scope, &citation.source_key, &kind)?;
        if let Some(latest) =
            latest.filter(|latest| !citation.evidence_ids.contains(&latest.uuid()))
        {
            citation.review(&latest);
        }
    }
    if let Some(repository) = citation.repository_id
        && let Some(latest) = sources::latest_audit(scope, repository)?
    {
        citation.supersede_report(latest.uuid(), scope.now());
    }
    Ok(())
}
