//! The area contract as Rust, generated from `wit/`.

#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated; wit/ documents it")]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "area",
    include_component_type: true,
    require_store_data_send: true,
    // For recordings of what crosses it.
    additional_derives: [serde::Serialize, serde::Deserialize],
    imports: {
        "assurance:area/calendar": trappable,
        "assurance:area/crypto.random-bytes": trappable,
        "assurance:area/egress.check": trappable,
        "assurance:area/events": trappable,
        "assurance:area/jobs": trappable,
        "assurance:area/links": trappable,
        "assurance:area/log": trappable,
        "assurance:area/settings": trappable,
        "assurance:area/membership.vouch": trappable,
        default: async | trappable,
    },
    exports: { default: async },
    trappable_error_type: {
        "assurance:area/blobs.error" => super::capability::BlobsRefusal,
        "assurance:area/calendar.error" => super::capability::CalendarRefusal,
        "assurance:area/documents.error" => super::capability::DocumentsRefusal,
        "assurance:area/egress.error" => super::capability::EgressRefusal,
        "assurance:area/events.error" => super::capability::EventsRefusal,
        "assurance:area/jobs.error" => super::capability::JobsRefusal,
        "assurance:area/links.error" => super::capability::LinksRefusal,
        "assurance:area/malware.error" => super::capability::MalwareRefusal,
        "assurance:area/mail.error" => super::capability::MailRefusal,
        "assurance:area/membership.error" => super::capability::MembershipRefusal,
        "assurance:area/queue.error" => super::capability::QueueRefusal,
        "assurance:area/secrets.error" => super::capability::SecretsRefusal,
    },
});
