//! Compares citations with new evidence on the same subject, and with new audits of the same
//! repository.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobError, Query};
use area_shared::evidence::EvidenceRecord;

use crate::citations::StoredCitation;
use crate::sources;

/// Maximum number of citations in one page of a comparison with newer sources.
const BATCH: u32 = 500;

/// Maximum number of evidence subjects in one database query.
const SUBJECTS: usize = 100;

/// Members of the event `evidence_envelope.accepted` that this area reads, and the place at which
/// the next step continues.
#[derive(Serialize, Deserialize)]
struct EnvelopeAccepted {
    envelope_id: Uuid,
    /// Number of groups of [`SUBJECTS`] subjects whose citations are all compared.
    #[serde(default)]
    compared: usize,
    #[serde(default)]
    cursor: Option<String>,
}

/// Members of the event `audit.completed` that this area reads, and the page of citations at which
/// the next step continues.
#[derive(Serialize, Deserialize)]
struct AuditCompleted {
    repository_id: Uuid,
    #[serde(default)]
    cursor: Option<String>,
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
pub(crate) fn evidence(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let mut accepted: EnvelopeAccepted = event.data()?;
    let records =
        ctx.documents::<EvidenceRecord>().query().equals("envelope_id", accepted.envelope_id);
    let news = news(records.limit(1000).list()?);
    let subjects: Vec<&String> = news.keys().collect();
    for subjects in subjects.chunks(SUBJECTS).skip(accepted.compared) {
        let cited = ctx.documents::<StoredCitation>().query();
        let cited = cited.one_of("source_key", subjects.iter().copied());
        accepted.cursor = hold(ctx, cited.cursor(accepted.cursor.take()), |citation| {
            let about = news.get(&citation.source_key);
            let newer = citation.kind.as_ref().and_then(|kind| about?.get(kind));
            let newer = newer.filter(|newer| !citation.evidence_ids.contains(&newer.uuid()));
            if let Some(newer) = newer {
                citation.review(newer);
            }
        })?;
        if accepted.cursor.is_some() {
            return Ok(next_step(event, &accepted));
        }
        accepted.compared += 1;
    }
    Ok(Outcome::Done)
}

/// Handles a completed audit: supersedes citations of all audits of the repository but the latest.
pub(crate) fn audit(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let mut completed: AuditCompleted = event.data()?;
    let latest = sources::latest_audit(ctx, completed.repository_id)?;
    let Some(latest) = latest.map(|audit| audit.uuid()) else { return Ok(Outcome::Done) };
    let cited = ctx.documents::<StoredCitation>().query();
    let cited = cited.equals("repository_id", completed.repository_id);
    completed.cursor = hold(ctx, cited.cursor(completed.cursor), |citation| {
        citation.supersede_report(latest, event.occurred_at);
    })?;
    let more = completed.cursor.is_some();
    Ok(if more { next_step(event, &completed) } else { Outcome::Done })
}

/// Returns the outcome that runs the delivery again with this place as its data.
fn next_step(event: EventDelivery, place: &impl Serialize) -> Outcome<EventDelivery> {
    let data = serde_json::value::to_raw_value(place).expect("data that JSON can express");
    Outcome::Continue(EventDelivery { data, ..event })
}

/// Updates one page of the citations with `judge` and stores those that changed. Returns the cursor
/// of the next page. Compares also what another event has compared since this one was published:
/// that event has other news.
fn hold(
    ctx: &JobCtx,
    cited: Query<'_, StoredCitation>,
    judge: impl Fn(&mut StoredCitation),
) -> Result<Option<String>, JobError> {
    let page = cited.ascending("looked_at").limit(BATCH).page()?;
    for mut citation in page.items {
        let times =
            |one: &StoredCitation| (one.confirmed_at, one.superseded_at, one.other_content_at);
        let before = times(&citation);
        judge(&mut citation);
        if times(&citation) != before {
            ctx.documents().replace(&mut citation)?;
        }
    }
    Ok(page.next_cursor)
}

#[cfg(test)]
mod tests {
    use area_sdk::testing::FakeHost;
    use area_sdk::wit::Outcome;
    use serde_json::{Value, json};

    use super::*;
    use crate::tests::{AUDIT, EVIDENCE, REPOSITORY, answer, audit, observe, standing, three};

    /// Delivers an event that was published at this time, and runs all steps.
    fn deliver(host: &FakeHost, name: &str, data: Value, occurred_at: Timestamp) {
        let id = Uuid::from_u128(1);
        let event = json!({ "id": id, "name": name, "data": data, "occurred_at": occurred_at });
        assert_eq!(host.run_to_end("event", event, 1), Outcome::Done);
    }

    fn accepted(host: &FakeHost, envelope: u128, at: Timestamp) {
        let data = json!({ "envelope_id": Uuid::from_u128(envelope) });
        deliver(host, "evidence_envelope.accepted", data, at);
    }

    /// Makes a questionnaire whose first answer cites evidence, and the evidence with an audit.
    fn with_two_citations(host: &FakeHost) -> Value {
        observe(host, EVIDENCE, 1, "a", host.now());
        audit(host, AUDIT, host.now());
        let made = three(host);
        let cited = json!([
            { "evidence_ids": [EVIDENCE] },
            { "evidence_ids": [EVIDENCE], "report_id": AUDIT },
        ]);
        answer(host, &made, 0, json!({ "answer": "Yes", "citations": cited }));
        made
    }

    #[test]
    fn news_that_waited_together_are_all_compared() {
        let host = FakeHost::new(crate::area());
        let made = with_two_citations(&host);
        host.advance(60);
        let (published_at, later) = (host.now(), Uuid::from_u128(0xa2));
        observe(&host, Uuid::from_u128(0xe2), 2, "a", published_at);
        audit(&host, later, published_at);
        observe(&host, Uuid::from_u128(0xe3), 3, "b", published_at);

        host.advance(60);
        accepted(&host, 2, published_at);
        assert_eq!(standing(&host, &made).0, ["current", "current"]);
        let completed = json!({ "audit_id": later, "repository_id": REPOSITORY });
        deliver(&host, "audit.completed", completed, published_at);
        assert_eq!(standing(&host, &made).0, ["current", "superseded"]);
        accepted(&host, 3, published_at);
        assert_eq!(standing(&host, &made).0, ["superseded", "superseded"]);
    }

    #[test]
    fn content_that_returns_is_current_again() {
        let host = FakeHost::new(crate::area());
        let made = with_two_citations(&host);
        let start = host.now();
        // Envelope, content, time of the observation; the third arrives late.
        for (envelope, content, seconds, status) in [
            (2, "b", 60, "superseded"),
            (3, "a", 120, "current"),
            (4, "b", 90, "current"),
            (5, "c", 240, "superseded"),
            (6, "a", 180, "superseded"),
            (7, "a", 300, "current"),
        ] {
            let id = Uuid::from_u128(0xe0 + envelope);
            observe(&host, id, envelope, content, start.plus_seconds(seconds));
            host.advance(60);
            accepted(&host, envelope, host.now());
            assert_eq!(standing(&host, &made).0, [status, status], "envelope {envelope}");
        }

        let (later, now) = (Uuid::from_u128(0xa2), host.now());
        audit(&host, later, now);
        let completed = json!({ "audit_id": later, "repository_id": REPOSITORY });
        deliver(&host, "audit.completed", completed, now);
        observe(&host, Uuid::from_u128(0xe8), 8, "a", now);
        accepted(&host, 8, now);
        assert_eq!(standing(&host, &made).0, ["current", "superseded"]);
    }

    #[test]
    fn evidence_about_each_cited_subject_counts() {
        let host = FakeHost::new(crate::area());
        let backups = |id: u128, content: &str, at: Timestamp| {
            let record = json!({
                "kind": "policy", "subject_key": "backups", "content_sha256": content,
                "observed_at": at, "envelope_id": Uuid::from_u128(id),
            });
            let id = Uuid::from_u128(id);
            host.put_document("evidence.records", &id.to_string(), record);
            id
        };
        let older = backups(2, "a", host.now());
        host.advance(60);
        observe(&host, EVIDENCE, 1, "a", host.now());
        let made = three(&host);
        let cited = json!([{ "evidence_ids": [EVIDENCE, older] }]);
        answer(&host, &made, 0, json!({ "answer": "Yes", "citations": cited }));
        assert_eq!(standing(&host, &made), (vec![json!("current")], json!("supported")));
        for (id, content, status) in [(3, "b", "superseded"), (4, "a", "current")] {
            host.advance(60);
            backups(id, content, host.now());
            accepted(&host, id, host.now());
            assert_eq!(standing(&host, &made).0, [status], "{content}");
        }
        backups(5, "b", host.now().plus_seconds(60));
        answer(&host, &made, 0, json!({ "citations": cited }));
        assert_eq!(standing(&host, &made).0, ["superseded"], "old news are seen at once");
    }

    #[test]
    fn many_citations_are_compared_page_by_page() {
        let host = FakeHost::new(crate::area());
        observe(&host, EVIDENCE, 1, "a", host.now());
        let made = three(&host);
        let cited = json!([{ "evidence_ids": [EVIDENCE] }]);
        answer(&host, &made, 0, json!({ "answer": "Yes", "citations": cited }));
        let citation = host.documents("citations").remove(0);
        for id in 1..=BATCH {
            let id = Uuid::from_u128(id.into()).to_string();
            host.put_document("citations", &id, citation.clone());
        }
        host.advance(60);
        observe(&host, Uuid::from_u128(0xe2), 2, "b", host.now());
        accepted(&host, 2, host.now());
        let citations = host.documents("citations");
        assert_eq!(citations.len(), BATCH as usize + 1);
        assert!(citations.iter().all(|citation| !citation["other_content_at"].is_null()));
    }
}
