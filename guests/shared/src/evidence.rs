//! Records of the area `evidence`, and a job that consumes some kinds of them.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, EventDelivery, JobError, JobOptions};

use crate::uploads::{self, UploadParseResult, UploadReady};

/// An accepted evidence record, as other areas read it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EvidenceRecord {
    /// The producer's id of the record, and the document's id.
    pub evidence_id: Uuid,
    /// Id of the producer of the record.
    pub producer_id: Uuid,
    /// Kind of the record: `service`, `finding`, `deployment`, and so on.
    pub kind: String,
    /// Name of the record's subject, in the form that the kind defines.
    pub subject_key: String,
    /// Summary of the record, at most 4,000 characters.
    pub summary: String,
    /// Lower-case hex SHA-256 of the record's content. An upload whose unpacked content has this
    /// digest has the content.
    pub content_sha256: String,
    /// Confidence of the producer, from 0 to 1.
    pub confidence: f64,
    /// Time at which the producer observed what the record states.
    pub observed_at: Timestamp,
    /// Name of the system from which the record comes.
    pub provider: String,
    /// Reference of the record within the system from which it comes.
    pub source_ref: String,
    /// Type of `source_ref`, as a lower-case word.
    pub source_type: String,
    /// Kind of the source from which the record's envelope was collected.
    pub source_kind: String,
    /// Id of the source from which the record's envelope was collected.
    pub source_external_id: String,
    /// Revision of the source from which the record's envelope was collected.
    pub source_revision: String,
}

document!(EvidenceRecord, "evidence.records");

/// An evidence record with its parsed description; `None` if it has none.
pub type RecordWithDescription<T> = (Stored<EvidenceRecord>, Option<T>);

/// Returns evidence records with their parsed descriptions: the content of the ready upload with
/// the record's digest, otherwise the record's summary. Leaves out a record whose content exceeds
/// 1 MiB, because its summary is for people.
///
/// # Errors
/// The job is retried while the blob store is unavailable.
pub fn described<T: Clone>(
    scope: &Scope,
    records: Vec<Stored<EvidenceRecord>>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<RecordWithDescription<T>>, JobError> {
    let digests = records.iter().map(|record| record.content_sha256.as_str());
    let contents = uploads::contents(scope, digests, &parse)?;
    let described = records.into_iter().filter_map(|record| {
        let content = match contents.get(&record.content_sha256) {
            Some(UploadParseResult::TooLarge) => return None,
            Some(UploadParseResult::Parsed(content)) => content.clone(),
            None => None,
        };
        let description = content.or_else(|| parse(&record.summary));
        Some((record, description))
    });
    Ok(described.collect())
}

/// Name of the event that [`EvidenceConsumer::accepted`] handles.
pub const ENVELOPE_ACCEPTED: &str = "evidence_envelope.accepted";

/// Data of the event [`ENVELOPE_ACCEPTED`].
#[derive(Deserialize)]
struct EnvelopeAccepted {
    envelope_id: Uuid,
    kinds: BTreeSet<String>,
}

/// An import of evidence records of some kinds. An area subscribes
/// [`accepted`](Self::accepted) to [`ENVELOPE_ACCEPTED`], [`ready`](Self::ready)
/// to [`UploadReady::NAME`], and runs [`ImportRecordsJob`] by [`run`](Self::run).
///
/// A record may come before the upload of its content or after it. It is
/// imported when it is accepted, and again when its content is ready for the
/// first time.
pub trait EvidenceConsumer: Sized + 'static {
    /// Kind of the job that imports the records.
    const JOB: &'static str;
    /// Kinds of evidence records that are imported.
    const RECORD_KINDS: &'static [&'static str];
    /// Maximum number of records imported in one step of the job.
    const STEP: u32;

    /// Imports records, in the order in which they were observed. A record may be passed more than
    /// once.
    ///
    /// # Errors
    /// The error of the job.
    fn import(ctx: &JobCtx, records: Vec<Stored<EvidenceRecord>>) -> Result<(), JobError>;

    /// Handles [`ENVELOPE_ACCEPTED`]: enqueues the import of the envelope's records if some have
    /// one of [`RECORD_KINDS`](Self::RECORD_KINDS).
    ///
    /// # Errors
    /// If the event's data has another shape.
    fn accepted(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
        let accepted: EnvelopeAccepted = event.data()?;
        if Self::RECORD_KINDS.iter().any(|kind| accepted.kinds.contains(*kind)) {
            let id = accepted.envelope_id;
            let later =
                JobOptions { at: None, resource: Some(id), dedupe_key: Some(id.to_string()) };
            ctx.enqueue_with(&ImportRecordsJob::<Self>::of(RecordsToImport::Envelope(id)), later);
        }
        Ok(Outcome::Done)
    }

    /// Handles [`UploadReady::NAME`]: enqueues the import of the records whose content the upload
    /// has, unless an earlier upload had it.
    ///
    /// # Errors
    /// If the event's data has another shape.
    fn ready(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
        let ready: UploadReady = event.data()?;
        let Some(digest) = ready.content_sha256 else { return Ok(Outcome::Done) };
        let records = ctx.documents::<EvidenceRecord>().query().equals("content_sha256", &digest);
        if records.one_of("kind", Self::RECORD_KINDS.iter().copied()).first()?.is_some() {
            if let Some(id) = ready.upload_id
                && uploads::is_repeated(ctx, id, &digest)?
            {
                return Ok(Outcome::Done);
            }
            let dedupe_key = Some(digest.clone());
            let later = JobOptions { at: None, resource: ready.upload_id, dedupe_key };
            ctx.enqueue_with(
                &ImportRecordsJob::<Self>::of(RecordsToImport::Content(digest)),
                later,
            );
        }
        Ok(Outcome::Done)
    }

    /// Imports one page of records, at most [`STEP`](Self::STEP), and continues until all are
    /// imported.
    ///
    /// # Errors
    /// As for [`import`](Self::import).
    fn run(ctx: &JobCtx, job: ImportRecordsJob<Self>) -> JobResult<ImportRecordsJob<Self>> {
        let records = ctx.documents::<EvidenceRecord>().query();
        let records = match &job.of {
            RecordsToImport::Envelope(id) => records.equals("envelope_id", *id),
            RecordsToImport::Content(digest) => records.equals("content_sha256", digest),
        };
        let records = records.one_of("kind", Self::RECORD_KINDS.iter().copied());
        let records = records.ascending("observed_at").limit(Self::STEP);
        let page = match records.cursor(job.cursor).page() {
            // A former version used another query.
            Err(DocumentError::InvalidCursor) => {
                return Ok(Outcome::Continue(ImportRecordsJob::of(job.of)));
            }
            page => page?,
        };
        Self::import(ctx, page.items)?;
        Ok(match page.next_cursor {
            None => Outcome::Done,
            cursor => Outcome::Continue(ImportRecordsJob { cursor, ..job }),
        })
    }
}

/// Job of an [`EvidenceConsumer`] that imports records.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ImportRecordsJob<C> {
    of: RecordsToImport,
    cursor: Option<String>,
    #[serde(skip)]
    consumer: PhantomData<fn() -> C>,
}

/// Which evidence records a job imports, out of those whose kind is in
/// [`RECORD_KINDS`](EvidenceConsumer::RECORD_KINDS).
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordsToImport {
    /// The job imports the records of the envelope with this id.
    Envelope(Uuid),
    /// The job imports the records whose content has this digest.
    Content(String),
}

impl<C> ImportRecordsJob<C> {
    fn of(records: RecordsToImport) -> Self {
        Self { of: records, cursor: None, consumer: PhantomData }
    }
}

impl<C: EvidenceConsumer> Job for ImportRecordsJob<C> {
    const KIND: &'static str = C::JOB;
}
