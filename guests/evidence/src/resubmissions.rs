//! Envelopes that were submitted again under another idempotency key or by another user. The new
//! key is then used up like the first one, and its retries get the same receipt.

use area_sdk::prelude::*;

use crate::envelope::EvidenceEnvelope;
use crate::receipts::EnvelopeDigests;

/// A further submission of an envelope that already has a receipt, under another idempotency key or
/// by another user.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Resubmission")]
pub(crate) struct StoredResubmission {
    submitted_by: Uuid,
    idempotency_key: String,
    receipt_id: Uuid,
    signed_envelope_sha256: String,
}

document!(StoredResubmission, "resubmissions");

/// Stores the further submission of an envelope that has a valid signature and already a receipt.
pub(crate) fn keep(
    ctx: &Ctx,
    envelope: &EvidenceEnvelope,
    receipt_id: Uuid,
    digests: &EnvelopeDigests,
) -> Result<()> {
    let resubmission = StoredResubmission {
        submitted_by: ctx.user(),
        idempotency_key: envelope.idempotency_key.clone(),
        receipt_id,
        signed_envelope_sha256: digests.signed.clone(),
    };
    Ok(ctx.documents().create(ctx.new_id(), &resubmission)?)
}

/// Whether a further submission of exactly this envelope is stored.
pub(crate) fn has(ctx: &Ctx, digests: &EnvelopeDigests) -> Result<bool> {
    let same = ctx.documents::<StoredResubmission>().query();
    Ok(same.equals("signed_envelope_sha256", &digests.signed).first()?.is_some())
}

/// Returns the digest of the signed envelope that the caller submitted again under this idempotency
/// key.
pub(crate) fn sent_under(ctx: &Ctx, idempotency_key: &str) -> Result<Option<String>> {
    let own = ctx.documents::<StoredResubmission>().query().equals("submitted_by", ctx.user());
    let found = own.equals("idempotency_key", idempotency_key).first()?;
    Ok(found.map(|found| found.value.signed_envelope_sha256))
}
