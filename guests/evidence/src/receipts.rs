//! Receipts: results of envelopes, written once and never changed. Also the ingestion run of each
//! envelope, and its events.

use std::collections::BTreeSet;

use area_sdk::prelude::*;

use crate::envelope::{EvidenceEnvelope, SCHEMA_VERSION};
use crate::keys::ProducerKey;
use crate::records::{EnvelopeResults, ValidationError};

/// Result of the checks of an envelope.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReceiptStatus {
    /// All records of the envelope were accepted.
    Accepted,
    /// Some records of the envelope were accepted.
    PartiallyAccepted,
    /// No record of the envelope was accepted.
    Rejected,
}

/// The permanent receipt of an envelope.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct EnvelopeReceipt {
    pub(crate) accepted_at: Timestamp,
    pub(crate) accepted_count: usize,
    /// Id of the ingestion run of the envelope.
    pub(crate) connector_run_id: Uuid,
    pub(crate) created_at: Timestamp,
    pub(crate) envelope_id: Uuid,
    /// Codes of `validation_errors`, without duplicates.
    pub(crate) error_codes: BTreeSet<String>,
    pub(crate) expires_at: Timestamp,
    pub(crate) id: Uuid,
    pub(crate) idempotency_key: String,
    pub(crate) issued_at: Timestamp,
    /// Id of the ingestion; null unless `collection_method` is `mcp`.
    pub(crate) mcp_ingestion_id: Option<Uuid>,
    pub(crate) observed_at: Timestamp,
    /// Lower-case hex SHA-256 of the canonical envelope without its signature.
    pub(crate) payload_sha256: String,
    pub(crate) producer_id: Uuid,
    pub(crate) record_count: usize,
    pub(crate) rejected_count: usize,
    pub(crate) schema_version: String,
    /// Id (`key_id`) of the key that verified the signature.
    pub(crate) signature_key_id: String,
    /// Lower-case hex SHA-256 of the canonical envelope with its signature.
    pub(crate) signed_envelope_sha256: String,
    pub(crate) source_external_id: String,
    pub(crate) source_kind: String,
    pub(crate) source_provider: String,
    pub(crate) source_revision: String,
    pub(crate) status: ReceiptStatus,
    pub(crate) submitted_by: Uuid,
    pub(crate) updated_at: Timestamp,
    pub(crate) validation_errors: Vec<ValidationError>,
    pub(crate) workspace_id: Uuid,
}

/// The receipt of an envelope, with the digest that finds the same content under another key.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredReceipt {
    #[serde(flatten)]
    pub(crate) receipt: EnvelopeReceipt,
    /// SHA-256 of the canonical envelope without signature and idempotency key. It is equal for the
    /// same content under another key.
    pub(crate) content_sha256: String,
}

document!(StoredReceipt, "receipts");

/// An ingestion run: the import of one envelope's records.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "IngestionRun")]
pub(crate) struct StoredIngestionRun {
    envelope_id: Uuid,
    receipt_id: Uuid,
    producer_id: Uuid,
    collection_method: String,
    mcp_ingestion_id: Option<Uuid>,
    source_external_id: String,
    source_kind: String,
    source_provider: String,
    source_revision: String,
    observed_at: Timestamp,
    finished_at: Timestamp,
    status: ReceiptStatus,
    accepted_count: usize,
    rejected_count: usize,
}

document!(StoredIngestionRun, "ingestion_runs");

/// Published when an envelope was accepted completely or partially.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EnvelopeAccepted(EnvelopeEventPayload);

event!(EnvelopeAccepted, "evidence_envelope.accepted");

/// Published when no record of an envelope was accepted.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EnvelopeRejected(EnvelopeEventPayload);

event!(EnvelopeRejected, "evidence_envelope.rejected");

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EnvelopeOutcome")]
struct EnvelopeEventPayload {
    receipt_id: Uuid,
    envelope_id: Uuid,
    producer_id: Uuid,
    connector_run_id: Uuid,
    status: ReceiptStatus,
    accepted_count: usize,
    rejected_count: usize,
    /// Kinds of the accepted records of the envelope.
    kinds: BTreeSet<String>,
}

/// SHA-256 digests of an envelope: with and without parts of it.
pub(crate) struct EnvelopeDigests {
    pub(crate) payload: String,
    pub(crate) signed: String,
    pub(crate) content: String,
}

/// Stores receipt and ingestion run of an envelope, and publishes the event.
pub(crate) fn settle(
    ctx: &Ctx,
    envelope: &EvidenceEnvelope,
    key: &ProducerKey,
    digests: EnvelopeDigests,
    sorted: EnvelopeResults,
) -> Result<EnvelopeReceipt> {
    let receipt = receipt(ctx, envelope, key, &digests, &sorted);
    crate::records::keep(ctx, envelope, &sorted, receipt.id, key.producer_id)?;
    let run = ingestion_run(envelope, &receipt);
    ctx.documents().create(receipt.connector_run_id, &run)?;
    tell(ctx, &receipt, sorted.kinds);
    let stored = StoredReceipt { receipt, content_sha256: digests.content };
    ctx.documents().create(stored.receipt.id, &stored)?;
    Ok(stored.receipt)
}

fn receipt(
    ctx: &Ctx,
    envelope: &EvidenceEnvelope,
    key: &ProducerKey,
    digests: &EnvelopeDigests,
    sorted: &EnvelopeResults,
) -> EnvelopeReceipt {
    let now = ctx.now();
    let source = &envelope.source;
    let is_mcp = envelope.collection_method.eq_ignore_ascii_case("mcp");
    EnvelopeReceipt {
        accepted_at: now,
        accepted_count: sorted.accepted,
        connector_run_id: ctx.new_id(),
        created_at: now,
        envelope_id: envelope.envelope_id,
        error_codes: sorted.errors.iter().map(|error| error.code.clone()).collect(),
        expires_at: envelope.expires_at,
        id: ctx.new_id(),
        idempotency_key: envelope.idempotency_key.clone(),
        issued_at: envelope.issued_at,
        mcp_ingestion_id: is_mcp.then(|| ctx.new_id()),
        observed_at: source.observed_at,
        payload_sha256: digests.payload.clone(),
        producer_id: key.producer_id,
        record_count: envelope.records.len(),
        rejected_count: sorted.errors.len(),
        schema_version: SCHEMA_VERSION.to_owned(),
        signature_key_id: key.key_id.clone(),
        signed_envelope_sha256: digests.signed.clone(),
        source_external_id: source.external_id.clone(),
        source_kind: source.kind.clone(),
        source_provider: source.provider.clone(),
        source_revision: source.revision.clone(),
        status: status(sorted),
        submitted_by: ctx.user(),
        updated_at: now,
        validation_errors: sorted.errors.clone(),
        workspace_id: envelope.workspace_id,
    }
}

fn status(sorted: &EnvelopeResults) -> ReceiptStatus {
    match (sorted.accepted, sorted.errors.len()) {
        (0, _) => ReceiptStatus::Rejected,
        (_, 0) => ReceiptStatus::Accepted,
        _ => ReceiptStatus::PartiallyAccepted,
    }
}

fn ingestion_run(envelope: &EvidenceEnvelope, receipt: &EnvelopeReceipt) -> StoredIngestionRun {
    StoredIngestionRun {
        envelope_id: receipt.envelope_id,
        receipt_id: receipt.id,
        producer_id: receipt.producer_id,
        collection_method: envelope.collection_method.clone(),
        mcp_ingestion_id: receipt.mcp_ingestion_id,
        source_external_id: receipt.source_external_id.clone(),
        source_kind: receipt.source_kind.clone(),
        source_provider: receipt.source_provider.clone(),
        source_revision: receipt.source_revision.clone(),
        observed_at: receipt.observed_at,
        finished_at: receipt.accepted_at,
        status: receipt.status,
        accepted_count: receipt.accepted_count,
        rejected_count: receipt.rejected_count,
    }
}

fn tell(ctx: &Ctx, receipt: &EnvelopeReceipt, kinds: BTreeSet<String>) {
    let outcome = EnvelopeEventPayload {
        receipt_id: receipt.id,
        envelope_id: receipt.envelope_id,
        producer_id: receipt.producer_id,
        connector_run_id: receipt.connector_run_id,
        status: receipt.status,
        accepted_count: receipt.accepted_count,
        rejected_count: receipt.rejected_count,
        kinds,
    };
    if receipt.status == ReceiptStatus::Rejected {
        ctx.publish(EnvelopeRejected(outcome));
    } else {
        ctx.publish(EnvelopeAccepted(outcome));
    }
}

pub(crate) fn list(ctx: &Ctx, paging: Paging) -> Result<Page<EnvelopeReceipt>> {
    let all = ctx.documents::<StoredReceipt>().query();
    let page = all.paging(paging).page()?;
    Ok(page.map(|stored| stored.value.receipt))
}
