//! Operations that change or delete documents.

use serde_json::json;

use super::ChangedBody::{self, Member, Other};
use super::{Change, Deletion, Target};

const QUESTIONS: &str = "questionnaires/{questionnaire}/questions";

/// Every operation that changes a document.
pub(crate) const CHANGES: &[Change] = &[
    Change {
        event: Some(("group.updated", "group_id")),
        ..contended(
            "update_group",
            25,
            "catalog.groups",
            "groups",
            Other { body: |marker| json!({ "identities": [marker] }), kept: &["identities"] },
        )
    },
    Change {
        event: Some(("repository.updated", "repository_id")),
        ..contended(
            "update_repository",
            25,
            "catalog.repositories",
            "repositories",
            Member("external_id"),
        )
    },
    Change {
        event: Some(("service.updated", "service_id")),
        ..contended("update_service", 10, "catalog.services", "services", Member("description"))
    },
    contended("update_audit_schedule", 5, "schedules.schedules", "audit-schedules", Member("name")),
    Change {
        event: Some(("questionnaire.question_answered", "question_id")),
        ..contended("answer_question", 8, "questionnaires.questions", QUESTIONS, Member("answer"))
    },
    Change {
        posts: true,
        suffix: "/notes",
        target: Target::Recent,
        ..contended(
            "add_support_note",
            20,
            "support.cases",
            "support/cases",
            Other { body: |marker| json!({ "body": marker }), kept: &[] },
        )
    },
    Change {
        event: Some(("support_case.closed", "case_id")),
        ..act("close_support_case", 5, "support.cases", "support/cases", "/close")
    },
    recent(
        "update_assistant_conversation",
        5,
        "assistant.conversations",
        "assistant/conversations",
        Member("title"),
    ),
    recent("update_webhook", 5, "webhooks.subscriptions", "webhooks", Member("name")),
    again("rotate_webhook_secret", 3, "webhooks.subscriptions", "webhooks", "/rotate-secret"),
    recent("update_model_endpoint", 3, "assistant.endpoints", "model-endpoints", Member("name")),
    recent(
        "update_identity_provider",
        3,
        "identity.providers",
        "identity/providers",
        Member("client_id"),
    ),
    recent(
        "update_questionnaire",
        3,
        "questionnaires.questionnaires",
        "questionnaires",
        Member("title"),
    ),
    act("pause_audit_schedule", 2, "schedules.schedules", "audit-schedules", "/pause"),
    again("resume_audit_schedule", 2, "schedules.schedules", "audit-schedules", "/resume"),
    again("validate_model_endpoint", 2, "assistant.endpoints", "model-endpoints", "/validate"),
    again("disable_identity_provider", 2, "identity.providers", "identity/providers", "/disable"),
    again("enable_identity_provider", 2, "identity.providers", "identity/providers", "/enable"),
    again("resend_invitation", 2, "invitations.invitations", "invitations", "/resend"),
    again("test_webhook", 2, "webhooks.subscriptions", "webhooks", "/test"),
    act("revoke_evidence_producer", 2, "evidence.producers", "evidence-producers", "/revoke"),
    Change {
        event: Some(("invitation.revoked", "invitation_id")),
        ..act("revoke_invitation", 4, "invitations.invitations", "invitations", "/revoke")
    },
    Change {
        body: Other {
            body: |marker| json!({ "to_state": "cancelled", "notes": marker }),
            kept: &[],
        },
        event: Some(("remediation.program_transitioned", "program_id")),
        ..act(
            "transition_remediation_program",
            2,
            "remediation.programs",
            "structural/remediation-programs",
            "/transitions",
        )
    },
];

/// Describes a PATCH of one of the three contended documents of a collection.
const fn contended(
    operation: &'static str,
    weight: u32,
    collection: &'static str,
    path: &'static str,
    body: ChangedBody,
) -> Change {
    Change {
        operation,
        weight,
        posts: false,
        collection,
        path,
        suffix: "",
        target: Target::Contended,
        event: None,
        body,
    }
}

/// A PATCH of a recent document.
const fn recent(
    operation: &'static str,
    weight: u32,
    collection: &'static str,
    path: &'static str,
    body: ChangedBody,
) -> Change {
    Change { target: Target::Recent, ..contended(operation, weight, collection, path, body) }
}

/// A POST without a body to a document of which no other request is sent.
const fn act(
    operation: &'static str,
    weight: u32,
    collection: &'static str,
    path: &'static str,
    suffix: &'static str,
) -> Change {
    Change {
        posts: true,
        suffix,
        target: Target::Taken,
        ..contended(operation, weight, collection, path, ChangedBody::None)
    }
}

/// A POST without a body to a recent document.
const fn again(
    operation: &'static str,
    weight: u32,
    collection: &'static str,
    path: &'static str,
    suffix: &'static str,
) -> Change {
    Change { target: Target::Recent, ..act(operation, weight, collection, path, suffix) }
}

/// Every operation that deletes a document.
pub(crate) const DELETIONS: &[Deletion] = &[
    Deletion {
        operation: "delete_group_dependency",
        weight: 10,
        collection: "groups.dependencies",
        path: "group-dependencies",
        event: Some(("group_dependency.deleted", "dependency_id")),
    },
    Deletion {
        operation: "delete_assistant_conversation",
        weight: 4,
        collection: "assistant.conversations",
        path: "assistant/conversations",
        event: None,
    },
    Deletion {
        operation: "delete_webhook",
        weight: 4,
        collection: "webhooks.subscriptions",
        path: "webhooks",
        event: None,
    },
    Deletion {
        operation: "delete_model_endpoint",
        weight: 2,
        collection: "assistant.endpoints",
        path: "model-endpoints",
        event: Some(("model_endpoint.deleted", "model_endpoint_id")),
    },
    Deletion {
        operation: "delete_identity_provider",
        weight: 2,
        collection: "identity.providers",
        path: "identity/providers",
        event: Some(("identity_provider.deleted", "provider_id")),
    },
    Deletion {
        operation: "delete_questionnaire",
        weight: 2,
        collection: "questionnaires.questionnaires",
        path: "questionnaires",
        event: Some(("questionnaire.deleted", "questionnaire_id")),
    },
];
