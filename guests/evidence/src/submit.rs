//! Operation 3. [`submit`] checks in this order: workspace, idempotency, signature, envelope id,
//! time, records.
//!
//! 64 concurrent submissions of one envelope create one receipt: the unique index on receipts makes
//! the host run the losing calls again, and the second run finds the stored receipt.

use area_sdk::prelude::*;
use area_sdk::{Replayable, Verbatim};
use serde_json::{Map, Value};

use crate::canonical::{CanonicalJsonMembers, pae};
use crate::envelope::EvidenceEnvelope;
use crate::keys;
use crate::receipts::{self, EnvelopeDigests, EnvelopeReceipt, StoredReceipt};
use crate::{records, resubmissions};

/// Tolerated difference between the clocks of a producer and the service, in seconds.
pub(crate) const CLOCK_TOLERANCE_SECONDS: i64 = 300;
/// Maximum time from `issued_at` to `expires_at` of an envelope, in seconds.
pub(crate) const MAXIMUM_LIFETIME_SECONDS: i64 = 86_400;

/// Text for the OpenAPI document: rules of signatures and envelopes.
pub(crate) const DESCRIPTION: &str = "\
Signed bytes: the DSSE pre-authentication encoding of type \
`application/vnd.workspace-assurance.evidence-envelope.v1+json` over the RFC 8785 canonical form \
of the envelope without `signature`; Ed25519, verified strictly, by any active key of the \
workspace's producers.\n\n\
Checked in this order: shape; `workspace_id` is the path's; `Idempotency-Key` is the body's \
`idempotency_key`, and a retry answers with the first receipt, even of an envelope that has \
expired since (another body under the key: 422 `idempotency_key_reused`; the key is the user's, \
also where several access tokens of the user send it); signature (422 \
`signature_invalid`, for an unknown key too); envelope id (the same content under another key \
answers with the first receipt, other content: 409 `envelope_conflict`); time (issued at most \
300 s ahead, expired at most 300 s ago, good for at most a day); records.\n\n\
Records that break a rule are rejected one by one into `validation_errors` \
(`{index, pointer, code, detail}`): `confidence_out_of_range`, `invalid_sha256`, `invalid_word`, \
`length_out_of_range`, `observed_in_future`, `duplicate_evidence_id`, `evidence_id_conflict`. \
`status` is accepted, partially_accepted or rejected; a receipt is never changed.";

/// Response to a submission: the receipt, and whether an earlier submission created it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EnvelopeSubmission")]
pub(crate) struct EnvelopeSubmissionResponse {
    receipt: EnvelopeReceipt,
    replayed: bool,
}

type SubmissionReply = Created<Replayable<EnvelopeSubmissionResponse>>;

pub(crate) fn submit(ctx: &Ctx, envelope: Verbatim<EvidenceEnvelope>) -> Result<SubmissionReply> {
    let Verbatim { value: envelope, text } = envelope;
    check_names(ctx, &envelope)?;
    let (payload, digests) = digest(ctx, &text);
    let same_id = same_envelope(ctx, &envelope)?;
    if let Some(receipt) = retried(ctx, &envelope, &digests, same_id.as_ref())? {
        return Ok(answer(receipt, true));
    }
    let Some(key) = keys::verifying(ctx, &envelope.signature, &pae(&payload))? else {
        return Err(signature_invalid());
    };
    if let Some(earlier) = same_id {
        return settled_before(ctx, &envelope, earlier.value, &digests);
    }
    check_time(ctx.now(), &envelope)?;
    let sorted = records::sort(ctx, &envelope)?;
    let receipt = receipts::settle(ctx, &envelope, &key, digests, sorted)?;
    Ok(answer(receipt, false))
}

fn answer(receipt: EnvelopeReceipt, replayed: bool) -> SubmissionReply {
    Created(Replayable(EnvelopeSubmissionResponse { receipt, replayed }, replayed))
}

/// Checks that the request's workspace and idempotency key equal those in the envelope.
fn check_names(ctx: &Ctx, envelope: &EvidenceEnvelope) -> Result<()> {
    if envelope.workspace_id != ctx.workspace_id() {
        return Err(Problem::validation("/workspace_id", "This is not the workspace in the path."));
    }
    if ctx.idempotency_key() != Some(&envelope.idempotency_key) {
        let message = "This is not the key in the header Idempotency-Key.";
        return Err(Problem::validation("/idempotency_key", message));
    }
    Ok(())
}

/// Returns the signed payload in canonical form, and the digests of the envelope.
fn digest(ctx: &Ctx, text: &str) -> (Vec<u8>, EnvelopeDigests) {
    let object: Map<String, Value> =
        serde_json::from_str(text).expect("JSON that was parsed before");
    let members = CanonicalJsonMembers::of(&object);
    let payload = members.without(&["signature"]);
    let digests = EnvelopeDigests {
        payload: ctx.sha256_hex(&payload),
        signed: ctx.sha256_hex(&members.without(&[])),
        content: ctx.sha256_hex(&members.without(&["signature", "idempotency_key"])),
    };
    (payload, digests)
}

/// Returns the receipt of an envelope with the same id; `None` if there is none.
fn same_envelope(ctx: &Ctx, envelope: &EvidenceEnvelope) -> Result<Option<Stored<StoredReceipt>>> {
    let receipts = ctx.documents::<StoredReceipt>().query();
    Ok(receipts.equals("envelope_id", envelope.envelope_id).first()?)
}

/// Returns the receipt of exactly this envelope, if it was submitted before. The signature was
/// verified then and is not verified again: the key may have been revoked, or the envelope may have
/// expired. Refuses another envelope under an idempotency key of the caller.
fn retried(
    ctx: &Ctx,
    envelope: &EvidenceEnvelope,
    digests: &EnvelopeDigests,
    same_id: Option<&Stored<StoredReceipt>>,
) -> Result<Option<EnvelopeReceipt>> {
    let under_key = sent_under(ctx, &envelope.idempotency_key)?;
    if under_key.as_ref().is_some_and(|digest| *digest != digests.signed) {
        let detail = "This key was sent before, with another envelope.";
        return Err(Problem::unprocessable("idempotency_key_reused", detail));
    }
    let Some(earlier) = same_id else { return Ok(None) };
    let receipt = &earlier.receipt;
    if receipt.signed_envelope_sha256 != digests.signed && !resubmissions::has(ctx, digests)? {
        return Ok(None);
    }
    if under_key.is_none() {
        // Another user submitted the envelope before. From now on the key is the caller's too.
        resubmissions::keep(ctx, envelope, receipt.id, digests)?;
    }
    Ok(Some(receipt.clone()))
}

/// Returns the digest of the signed envelope that the caller submitted under an idempotency key;
/// `None` if the key is unused.
fn sent_under(ctx: &Ctx, idempotency_key: &str) -> Result<Option<String>> {
    let receipts = ctx.documents::<StoredReceipt>().query().equals("submitted_by", ctx.user());
    match receipts.equals("idempotency_key", idempotency_key).first()? {
        Some(stored) => Ok(Some(stored.value.receipt.signed_envelope_sha256)),
        None => resubmissions::sent_under(ctx, idempotency_key),
    }
}

/// Returns the response for an envelope with a valid signature whose id already has a receipt.
fn settled_before(
    ctx: &Ctx,
    envelope: &EvidenceEnvelope,
    earlier: StoredReceipt,
    digests: &EnvelopeDigests,
) -> Result<SubmissionReply> {
    if earlier.content_sha256 == digests.content {
        resubmissions::keep(ctx, envelope, earlier.receipt.id, digests)?;
        return Ok(answer(earlier.receipt, true));
    }
    let detail = "An envelope with this id was submitted before with other content.";
    Err(Problem::conflict("envelope_conflict", detail))
}

fn signature_invalid() -> Problem {
    let message = "No active key of this workspace's producers verifies this signature.";
    Problem::validation("/signature/value", message).code("signature_invalid").hint(
        "Sign the pre-authentication encoding of the canonical envelope without `signature`; \
         `assurance evidence sign` does.",
    )
}

fn check_time(now: Timestamp, envelope: &EvidenceEnvelope) -> Result<()> {
    let refuse = |pointer: &str, code: &str, message: &str| {
        Err(Problem::validation(pointer, message).code(code))
    };
    let (issued, expires) = (envelope.issued_at, envelope.expires_at);
    if issued > now.plus_seconds(CLOCK_TOLERANCE_SECONDS) {
        return refuse("/issued_at", "envelope_not_yet_valid", "Issued more than 300 s ahead.");
    }
    if expires < now.plus_seconds(-CLOCK_TOLERANCE_SECONDS) {
        return refuse("/expires_at", "envelope_expired", "Expired more than 300 s ago.");
    }
    if expires <= issued || expires > issued.plus_seconds(MAXIMUM_LIFETIME_SECONDS) {
        let message = "Must be after issued_at, by at most 86400 s.";
        return refuse("/expires_at", "envelope_lifetime_invalid", message);
    }
    Ok(())
}
