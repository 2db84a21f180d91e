//! Rules for single records. An invalid record is rejected alone; the other records of its envelope
//! are not affected.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;

use crate::envelope::{EvidenceEnvelope, EvidenceRecord};
use crate::submit::CLOCK_TOLERANCE_SECONDS;

/// Maximum size of a `subject_key`, in bytes; it is in one index entry with `observed_at`.
const MAX_SUBJECT_BYTES: usize = 1_500;

/// An error in a record, because of which the record was rejected.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ValidationError {
    /// Index of the record in `records` of the envelope, from 0.
    pub(crate) index: usize,
    /// JSON Pointer to the invalid value in the envelope.
    pub(crate) pointer: String,
    /// Code of the violated rule, for example `length_out_of_range`.
    pub(crate) code: String,
    /// What is wrong, and how to correct it, for the sender of the envelope.
    pub(crate) detail: String,
}

/// An accepted evidence record; the document's id is its `evidence_id`.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredRecord {
    #[serde(flatten)]
    record: EvidenceRecord,
    envelope_id: Uuid,
    receipt_id: Uuid,
    producer_id: Uuid,
    authority: String,
    collection_method: String,
    source_kind: String,
    source_provider: String,
    source_external_id: String,
    source_revision: String,
}

document!(StoredRecord, "records");

impl StoredRecord {
    fn new(
        envelope: &EvidenceEnvelope,
        record: &EvidenceRecord,
        receipt_id: Uuid,
        producer_id: Uuid,
    ) -> Self {
        Self {
            record: record.clone(),
            envelope_id: envelope.envelope_id,
            receipt_id,
            producer_id,
            authority: envelope.authority.clone(),
            collection_method: envelope.collection_method.clone(),
            source_kind: envelope.source.kind.clone(),
            source_provider: envelope.source.provider.clone(),
            source_external_id: envelope.source.external_id.clone(),
            source_revision: envelope.source.revision.clone(),
        }
    }
}

/// A rule that an evidence record violates: the record's member, the code of the rule, and a
/// description for people.
type RecordRuleViolation = (&'static str, &'static str, String);

fn length(
    member: &'static str,
    text: &str,
    least: usize,
    most: usize,
) -> Option<RecordRuleViolation> {
    let count = text.chars().count();
    let broken = !(least..=most).contains(&count);
    broken.then(|| {
        (
            member,
            "length_out_of_range",
            format!("{count} characters; {least} to {most} are allowed"),
        )
    })
}

fn subject(text: &str) -> Option<RecordRuleViolation> {
    let beyond = (text.len() > MAX_SUBJECT_BYTES).then(|| {
        let detail = format!("{} bytes; at most {MAX_SUBJECT_BYTES} are allowed", text.len());
        ("subject_key", "length_out_of_range", detail)
    });
    length("subject_key", text, 1, 500).or(beyond)
}

fn word(member: &'static str, text: &str) -> Option<RecordRuleViolation> {
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let good = (1..=100).contains(&text.len())
        && text.as_bytes()[0].is_ascii_lowercase()
        && text.bytes().all(letters);
    (!good).then(|| {
        (
            member,
            "invalid_word",
            "not a word of 1 to 100 of a-z, 0-9 and _, a letter first".to_owned(),
        )
    })
}

fn digest(text: &str) -> Option<RecordRuleViolation> {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let good = text.len() == 64 && text.bytes().all(hex);
    (!good).then(|| {
        ("content_sha256", "invalid_sha256", "not 64 lower-case hexadecimal digits".to_owned())
    })
}

fn confidence(value: f64) -> Option<RecordRuleViolation> {
    let good = (0.0..=1.0).contains(&value);
    (!good).then(|| ("confidence", "confidence_out_of_range", "not from 0 to 1".to_owned()))
}

fn observed(at: Timestamp, now: Timestamp) -> Option<RecordRuleViolation> {
    (at > now.plus_seconds(CLOCK_TOLERANCE_SECONDS)).then(|| {
        ("observed_at", "observed_in_future", "observed after the envelope was received".to_owned())
    })
}

/// Returns the first rule that the record violates by itself.
fn broken_rule(record: &EvidenceRecord, now: Timestamp) -> Option<RecordRuleViolation> {
    confidence(record.confidence)
        .or_else(|| digest(&record.content_sha256))
        .or_else(|| word("kind", &record.kind))
        .or_else(|| word("source_type", &record.source_type))
        .or_else(|| length("provider", &record.provider, 1, 200))
        .or_else(|| length("source_ref", &record.source_ref, 1, 2000))
        .or_else(|| subject(&record.subject_key))
        .or_else(|| length("summary", &record.summary, 0, 4000))
        .or_else(|| observed(record.observed_at, now))
}

/// Returns the rule that the record violates in comparison with earlier records of its envelope or
/// with stored evidence.
fn out_of_place(
    record: &EvidenceRecord,
    seen: &mut BTreeSet<Uuid>,
    kept: &BTreeMap<Uuid, EvidenceRecord>,
) -> Option<RecordRuleViolation> {
    if !seen.insert(record.evidence_id) {
        let detail = "another record of this envelope has this id".to_owned();
        return Some(("evidence_id", "duplicate_evidence_id", detail));
    }
    let other = kept.get(&record.evidence_id).is_some_and(|kept| kept != record);
    other.then(|| {
        let detail = "evidence with this id is stored already with other content".to_owned();
        ("evidence_id", "evidence_id_conflict", detail)
    })
}

/// Results of the checks of an envelope's records.
pub(crate) struct EnvelopeResults {
    /// Number of accepted records, including those stored before.
    pub(crate) accepted: usize,
    /// Errors of the rejected records.
    pub(crate) errors: Vec<ValidationError>,
    /// Kinds of the accepted records.
    pub(crate) kinds: BTreeSet<String>,
    /// Indexes of accepted records that are not stored yet.
    new: Vec<usize>,
}

/// Checks every record of an envelope. Returns which records were accepted, and the errors of the
/// others.
pub(crate) fn sort(ctx: &Ctx, envelope: &EvidenceEnvelope) -> Result<EnvelopeResults> {
    let ids = envelope.records.iter().map(|record| record.evidence_id);
    let kept = ctx.documents::<StoredRecord>().get_many(ids)?.into_iter();
    let kept = kept.map(|kept| (kept.uuid(), kept.value.record)).collect();
    Ok(judge(&envelope.records, &kept, ctx.now()))
}

fn judge(
    records: &[EvidenceRecord],
    kept: &BTreeMap<Uuid, EvidenceRecord>,
    now: Timestamp,
) -> EnvelopeResults {
    let mut sorted = EnvelopeResults {
        accepted: 0,
        errors: Vec::new(),
        kinds: BTreeSet::new(),
        new: Vec::new(),
    };
    let mut seen = BTreeSet::new();
    for (index, record) in records.iter().enumerate() {
        let broken = broken_rule(record, now).or_else(|| out_of_place(record, &mut seen, kept));
        if let Some((member, code, detail)) = broken {
            let pointer = format!("/records/{index}/{member}");
            sorted.errors.push(ValidationError { index, pointer, code: code.to_owned(), detail });
            continue;
        }
        sorted.accepted += 1;
        if !sorted.kinds.contains(&record.kind) {
            sorted.kinds.insert(record.kind.clone());
        }
        if !kept.contains_key(&record.evidence_id) {
            sorted.new.push(index);
        }
    }
    sorted
}

/// Stores the accepted records that are not stored yet.
pub(crate) fn keep(
    ctx: &Ctx,
    envelope: &EvidenceEnvelope,
    sorted: &EnvelopeResults,
    receipt_id: Uuid,
    producer_id: Uuid,
) -> Result<()> {
    let new: Vec<StoredRecord> = sorted
        .new
        .iter()
        .map(|&index| &envelope.records[index])
        .map(|record| StoredRecord::new(envelope, record, receipt_id, producer_id))
        .collect();
    ctx.documents().create_all(new.iter().map(|new| (new.record.evidence_id, new)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use area_sdk::testing::START;

    use super::*;

    fn record(id: u128) -> EvidenceRecord {
        EvidenceRecord {
            confidence: 0.5,
            content_sha256: "0".repeat(64),
            evidence_id: Uuid::from_u128(id),
            kind: "finding".to_owned(),
            observed_at: START,
            provider: "scanner".to_owned(),
            source_ref: "repo@1".to_owned(),
            source_type: "code".to_owned(),
            subject_key: "repo".to_owned(),
            summary: String::new(),
        }
    }

    fn codes(records: &[EvidenceRecord], kept: &[EvidenceRecord]) -> Vec<(usize, String)> {
        let kept = kept.iter().map(|record| (record.evidence_id, record.clone())).collect();
        let sorted = judge(records, &kept, START);
        assert_eq!(sorted.accepted + sorted.errors.len(), records.len());
        sorted
            .errors
            .into_iter()
            .map(|error| (error.index, error.pointer + " " + &error.code))
            .collect()
    }

    #[test]
    fn each_rule_rejects_its_record_alone() {
        let good = record(1);
        let bad = [
            (
                EvidenceRecord { confidence: 1.01, ..record(2) },
                "confidence confidence_out_of_range",
            ),
            (
                EvidenceRecord { content_sha256: "F".repeat(64), ..record(2) },
                "content_sha256 invalid_sha256",
            ),
            (EvidenceRecord { kind: "Finding".to_owned(), ..record(2) }, "kind invalid_word"),
            (
                EvidenceRecord { source_type: String::new(), ..record(2) },
                "source_type invalid_word",
            ),
            (
                EvidenceRecord { subject_key: String::new(), ..record(2) },
                "subject_key length_out_of_range",
            ),
            (
                EvidenceRecord { subject_key: "😀".repeat(376), ..record(2) },
                "subject_key length_out_of_range",
            ),
            (
                EvidenceRecord { summary: "é".repeat(4001), ..record(2) },
                "summary length_out_of_range",
            ),
            (
                EvidenceRecord { observed_at: START.plus_seconds(301), ..record(2) },
                "observed_at observed_in_future",
            ),
            (
                EvidenceRecord { summary: "again".to_owned(), ..record(1) },
                "evidence_id duplicate_evidence_id",
            ),
        ];
        for (bad, expected) in bad {
            assert_eq!(codes(&[good.clone(), bad], &[]), [(1, format!("/records/1/{expected}"))]);
        }
        let edge = EvidenceRecord {
            confidence: 1.0,
            subject_key: "€".repeat(500),
            summary: "é".repeat(4000),
            observed_at: START.plus_seconds(300),
            ..record(2)
        };
        assert_eq!(codes(&[good, edge], &[]), []);
    }

    #[test]
    fn evidence_that_is_kept_is_accepted_only_if_it_says_the_same() {
        let other = EvidenceRecord { summary: "other".to_owned(), ..record(1) };
        assert_eq!(codes(&[record(1)], &[record(1)]), []);
        let conflict = (0, "/records/0/evidence_id evidence_id_conflict".to_owned());
        assert_eq!(codes(&[other], &[record(1)]), [conflict]);
    }
}
