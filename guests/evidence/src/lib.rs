//! Signed evidence (operations 3 and 4). A producer outside the service signs an envelope of
//! records, and a member submits it. A receipt permanently documents the result. `submit` defines
//! the order of the checks.

pub mod canonical;
mod envelope;
#[cfg(not(target_arch = "wasm32"))]
pub mod fuzzing;
mod keys;
mod producers;
mod receipts;
mod records;
mod resubmissions;
mod schema;
mod submit;

use area_sdk::RateClass;
use area_sdk::prelude::*;

use keys::ProducerKey;
use producers::Producer;
use receipts::{EnvelopeAccepted, EnvelopeRejected, StoredIngestionRun, StoredReceipt};
use records::StoredRecord;
use resubmissions::StoredResubmission;

const PRODUCERS: &str = "/v1/workspaces/{workspace_id}/evidence-producers";

/// Declares the area `evidence`: its operations, collections and events.
pub fn area() -> Area {
    let area = Area::new("evidence", env!("CARGO_PKG_VERSION"))
        .summary("Signed evidence envelopes, their producers and keys")
        .uses(&[Capability::Crypto])
        .event::<EnvelopeAccepted>("An envelope was accepted completely or partially")
        .event::<EnvelopeRejected>(
            "An envelope was authentic, but none of its records was accepted",
        );
    operations(management(collections(area)))
}

fn collections(area: Area) -> Area {
    area.collections([
        Collection::of::<StoredRecord>()
            .summary("Accepted records; the id is the record's evidence_id")
            .index(&["kind", "observed_at"])
            .index(&["subject_key", "observed_at"])
            .index(&["content_sha256"])
            .index(&["envelope_id"])
            .readable_by(&["*"]),
        Collection::of::<StoredReceipt>()
            .summary("Receipts; written once, never changed")
            .unique(&["submitted_by", "idempotency_key"])
            .unique(&["envelope_id"]),
        Collection::of::<StoredResubmission>()
            .summary("Further idempotency keys of envelopes with a receipt")
            .unique(&["submitted_by", "idempotency_key"])
            .index(&["signed_envelope_sha256"]),
        Collection::of::<StoredIngestionRun>()
            .summary("Ingestion runs, one for each envelope with a receipt")
            .index(&["source_kind"])
            .readable_by(&["*"]),
        Collection::of::<Producer>()
            .summary("Producers, who may sign evidence for the workspace")
            .unique(&["name"])
            .readable_by(&["*"]),
        Collection::of::<ProducerKey>()
            .summary("Public keys of producers")
            .unique(&["key_id"])
            .unique(&["public_key"])
            .index(&["producer_id"])
            .index(&["state"]),
    ])
}

fn operations(area: Area) -> Area {
    area.routes([
        post("submit_evidence_envelope", "/v1/workspaces/{workspace_id}/evidence-envelopes")
            .summary("Submit a signed evidence envelope")
            .description(submit::DESCRIPTION)
            .in_contract()
            .role(Role::Member)
            .feature_flag("evidence_envelopes")
            .idempotency_kept_by_area()
            .max_body_bytes(schema::MAX_BYTES)
            .rate(RateClass::Heavy)
            .deadline_ms(5000)
            .problems(&[
                "idempotency_key_reused",
                "signature_invalid",
                "envelope_conflict",
                "envelope_expired",
                "envelope_not_yet_valid",
                "envelope_lifetime_invalid",
            ])
            .example(include_str!("../examples/submit_evidence_envelope.json"))
            .handler(submit::submit),
        get(
            "get_evidence_envelope_schema",
            "/v1/workspaces/{workspace_id}/evidence-envelopes/schema",
        )
        .summary("Describe the accepted envelope schema")
        .description("The versions, algorithms, sizes and lifetimes that an envelope must keep to.")
        .in_contract()
        .example(include_str!("../examples/get_evidence_envelope_schema.json"))
        .handler(schema::describe),
        get("list_evidence_receipts", "/v1/workspaces/{workspace_id}/evidence-envelopes")
            .summary("List receipts, newest first")
            .description(
                "One page of receipts, one for each envelope whose records were checked, with \
                 `status` accepted, partially_accepted or rejected.",
            )
            .example(include_str!("../examples/list_evidence_receipts.json"))
            .handler(receipts::list),
    ])
}

fn management(area: Area) -> Area {
    area.routes([
        post("create_evidence_producer", PRODUCERS)
            .summary("Create a producer, who may sign evidence")
            .description(
                "A producer signs envelopes with its keys. Add a public key before its first \
                 envelope.",
            )
            .role(Role::Admin)
            .example(include_str!("../examples/create_evidence_producer.json"))
            .handler(producers::create),
        get("list_evidence_producers", PRODUCERS)
            .summary("List producers, newest first")
            .description("One page of producers, revoked ones included.")
            .example(include_str!("../examples/list_evidence_producers.json"))
            .handler(producers::list),
        post(
            "revoke_evidence_producer",
            "/v1/workspaces/{workspace_id}/evidence-producers/{producer_id}/revoke",
        )
        .summary("Revoke a producer and all its keys")
        .description("Accepted evidence stays accepted. Revoking twice changes nothing.")
        .role(Role::Admin)
        .example(include_str!("../examples/revoke_evidence_producer.json"))
        .if_match()
        .handler(producers::revoke),
        post(
            "create_evidence_producer_key",
            "/v1/workspaces/{workspace_id}/evidence-producers/{producer_id}/keys",
        )
        .summary("Add an Ed25519 public key to a producer")
        .description(
            "`public_key` is base64 of the 32 raw bytes or of the SubjectPublicKeyInfo, or a PEM \
            text. A key can be added only once, to one producer. A workspace has at most 100 \
            active keys.",
        )
        .role(Role::Admin)
        .problems(&["too_many_keys", "producer_revoked"])
        .example(include_str!("../examples/create_evidence_producer_key.json"))
        .handler(keys::create),
        get(
            "list_evidence_producer_keys",
            "/v1/workspaces/{workspace_id}/evidence-producers/{producer_id}/keys",
        )
        .summary("List a producer's keys, newest first")
        .description("One page of public keys, revoked ones included.")
        .example(include_str!("../examples/list_evidence_producer_keys.json"))
        .handler(keys::list),
        post(
            "revoke_evidence_producer_key",
            "/v1/workspaces/{workspace_id}/evidence-producer-keys/{id}/revoke",
        )
        .summary("Revoke a key")
        .description("It verifies no new envelopes; accepted evidence stays accepted.")
        .role(Role::Admin)
        .example(include_str!("../examples/revoke_evidence_producer_key.json"))
        .handler(keys::revoke),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
