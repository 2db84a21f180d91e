//! Compares citations with new evidence on the same subject, and with new audits of the same
//! repository.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobError};
use area_shared::evidence::EvidenceRecord;

use crate::citations::StoredCitation;
use crate::sources;

/// Maximum number of citations that one step compares with newer sources.
const BATCH: u32 = 500;

/// Maximum number of evidence subjects in one database query.
const SUBJECTS: usize = 100;

/// Members of the event `evidence_envelope.accepted` that this area reads.
#[derive(Deserialize)]
struct EnvelopeAccepted {
    envelope_id: Uuid,
}

/// Members of the event `audit.completed` that this area reads.
#[derive(Deserialize)]
struct AuditCompleted {
    repository_id: Uuid,
}

/// Newest evidence record of each kind, by subject and kind.
type NewestRecords = BTreeMap<String, BTreeMap<String, Stored<EvidenceRecord>>>;

fn news(records: Vec<Stored<EvidenceRecord>>) -> NewestRecords {
    let mut news = NewestRecords::new();
    for record in records {
        let subject = news.entry(record.subject_key.clone()).or_default();
        let newer = subject
            .get(&record.kind)
            .is_none_or(|other| (other.observed_at, &other.id) < (record.observed_at, &record.id));
        if newer {
            subject.insert(record.kind.clone(), record);
        }
    }
    news
}

/// Handles new evidence: confirms or supersedes citations of older evidence about the same subject.
/// Skips citations that were compared after the event, so the step repeats until none is left.
pub(crate) fn evidence(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let accepted: EnvelopeAccepted = event.data()?;
    let records =
        ctx.documents::<EvidenceRecord>().query().equals("envelope_id", accepted.envelope_id);
    let news = news(records.limit(1000).list()?);
    let subjects: Vec<&String> = news.keys().collect();
    for subjects in subjects.chunks(SUBJECTS) {
        let cited = ctx.documents::<StoredCitation>().query();
        let cited = cited.one_of("source_key", subjects.iter().copied());
        let cited = cited.range("looked_at", None, Some(event.occurred_at.into()));
        let more = hold(ctx, cited.limit(BATCH).list()?, |citation| {
            let about = news.get(&citation.source_key);
            let newer = citation.kind.as_ref().and_then(|kind| about?.get(kind));
            let newer = newer.filter(|newer| !citation.evidence_ids.contains(&newer.uuid()));
            if let Some(newer) = newer {
                citation.review(newer);
            }
        })?;
        if more {
            return Ok(Outcome::Continue(event));
        }
    }
    Ok(Outcome::Done)
}

/// Handles a completed audit: supersedes citations of all audits of the repository but the latest.
pub(crate) fn audit(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let completed: AuditCompleted = event.data()?;
    let latest = sources::latest_audit(ctx, completed.repository_id)?;
    let Some(latest) = latest.map(|audit| audit.uuid()) else { return Ok(Outcome::Done) };
    let cited = ctx.documents::<StoredCitation>().query();
    let cited = cited.equals("repository_id", completed.repository_id);
    let cited = cited.range("looked_at", None, Some(event.occurred_at.into()));
    let more = hold(ctx, cited.limit(BATCH).list()?, |citation| {
        citation.supersede_report(latest, event.occurred_at);
    })?;
    Ok(if more { Outcome::Continue(event) } else { Outcome::Done })
}

/// Updates citations with `judge` and stores them. Returns whether there may be more to compare.
fn hold(
    ctx: &JobCtx,
    cited: Vec<Stored<StoredCitation>>,
    judge: impl Fn(&mut StoredCitation),
) -> Result<bool, JobError> {
    let more = cited.len() >= BATCH as usize;
    for mut citation in cited {
        judge(&mut citation);
        citation.looked(ctx.now());
        ctx.documents().replace(&mut citation)?;
    }
    Ok(more)
}
