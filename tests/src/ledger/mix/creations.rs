//! Operations that create documents.

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::{Body, Creation, Draft};
use crate::artifacts::form;
use crate::ledger::tenant::{Tenant, schedule};

/// Every operation that creates a document that can be verified.
pub(crate) const CREATIONS: &[Creation] = &[
    Creation {
        weight: 100,
        kept: &["name", "provider", "url"],
        event: Some(("repository.created", "repository_id")),
        read_at: Some("repositories"),
        ..creation("create_repository", "catalog.repositories", |_, marker, _| {
            let url = format!("https://example.com/{marker}");
            let body = json!({ "name": marker, "provider": "github", "url": url });
            Some(Draft::json("repositories", body))
        })
    },
    Creation {
        weight: 100,
        kept: &["subject", "description"],
        event: Some(("support_case.created", "case_id")),
        read_at: Some("support/cases"),
        ..creation("create_support_case", "support.cases", |_, marker, rng| {
            let description = "It does not work. ".repeat(rng.random_range(1..20));
            let body = json!({ "subject": marker, "description": description });
            Some(Draft::json("support/cases", body))
        })
    },
    Creation {
        weight: 40,
        kept: &["name", "trust_zone", "identities"],
        event: Some(("group.created", "group_id")),
        read_at: Some("groups"),
        ..creation("create_group", "catalog.groups", |_, marker, _| {
            let body = json!({ "name": marker, "trust_zone": "dmz", "identities": [marker] });
            Some(Draft::json("groups", body))
        })
    },
    Creation {
        weight: 20,
        kept: &["name", "repository_ids"],
        event: Some(("service.created", "service_id")),
        read_at: Some("services"),
        ..creation("create_service", "catalog.services", |tenant, marker, rng| {
            let repository = tenant.recent("catalog.repositories", rng)?;
            let body = json!({ "name": marker, "repository_ids": [repository] });
            Some(Draft::json("services", body))
        })
    },
    Creation {
        weight: 30,
        kept: &["relationship_kind", "source_group_id", "target_group_id"],
        event: Some(("group_dependency.created", "dependency_id")),
        read_at: Some("group-dependencies"),
        ..creation("create_group_dependency", "groups.dependencies", dependency)
    },
    Creation {
        weight: 20,
        kept: &["name", "repository_id", "timezone"],
        read_at: Some("audit-schedules"),
        ..creation("create_audit_schedule", "schedules.schedules", |tenant, marker, _| {
            Some(Draft::json("audit-schedules", schedule(&tenant.repository, marker)))
        })
    },
    Creation {
        weight: 6,
        kept: &["commit_sha", "repository_id"],
        read_at: Some("audits"),
        ..creation("start_audit", "schedules.audits", |tenant, marker, rng| {
            let repository = tenant.recent("catalog.repositories", rng)?;
            let shop = rng.random_bool(0.5);
            let repository = if shop { tenant.repository.clone() } else { repository };
            let body = json!({ "repository_id": repository, "commit_sha": marker });
            Some(Draft::json("audits", body))
        })
    },
    Creation {
        weight: 30,
        id: "/receipt/id",
        kept: &["idempotency_key", "envelope_id"],
        event: Some(("evidence_envelope.accepted", "receipt_id")),
        ..creation("submit_evidence_envelope", "evidence.receipts", |tenant, marker, _| {
            Some(Draft::json("evidence-envelopes", tenant.envelope(marker)))
        })
    },
    Creation {
        weight: 5,
        kept: &["name"],
        ..creation("create_evidence_producer", "evidence.producers", |_, marker, _| {
            Some(Draft::json("evidence-producers", json!({ "name": marker })))
        })
    },
    Creation {
        weight: 20,
        kept: &["title"],
        most: 60,
        event: Some(("assistant.conversation_created", "conversation_id")),
        read_at: Some("assistant/conversations"),
        ..creation("create_assistant_conversation", "assistant.conversations", |_, marker, _| {
            Some(Draft::json("assistant/conversations", json!({ "title": marker })))
        })
    },
    Creation {
        weight: 6,
        id: "/message/id",
        kept: &["content"],
        ..creation("post_assistant_message", "assistant.messages", |tenant, marker, _| {
            let path = format!("assistant/conversations/{}/messages", tenant.conversation);
            Some(Draft::json(path, json!({ "content": marker })))
        })
    },
    Creation {
        weight: 4,
        kept: &["name", "base_url", "model_ids"],
        most: 40,
        event: Some(("model_endpoint.created", "model_endpoint_id")),
        read_at: Some("model-endpoints"),
        ..creation("create_model_endpoint", "assistant.endpoints", |_, marker, _| {
            let body = json!({
                "name": marker, "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-1",
                "model_ids": ["small"],
            });
            Some(Draft::json("model-endpoints", body))
        })
    },
    Creation {
        weight: 10,
        kept: &["url", "events"],
        most: 60,
        read_at: Some("webhooks"),
        ..creation("create_webhook", "webhooks.subscriptions", |_, marker, _| {
            let url = format!("http://127.0.0.1:9/{marker}");
            Some(Draft::json("webhooks", json!({ "url": url, "events": ["webhook.disabled"] })))
        })
    },
    Creation {
        weight: 8,
        kept: &["title"],
        id: "/questionnaire/id",
        most: 60,
        event: Some(("questionnaire.imported", "questionnaire_id")),
        read_at: Some("questionnaires"),
        ..creation("import_questionnaire", "questionnaires.questionnaires", questionnaire)
    },
    Creation {
        weight: 8,
        kept: &["email", "role"],
        most: 60,
        event: Some(("invitation.created", "invitation_id")),
        read_at: Some("invitations"),
        ..creation("create_invitation", "invitations.invitations", |_, marker, _| {
            let email = format!("{marker}@example.org");
            Some(Draft::json("invitations", json!({ "email": email, "role": "member" })))
        })
    },
    Creation {
        weight: 3,
        kept: &["name", "issuer", "client_id"],
        most: 40,
        event: Some(("identity_provider.created", "provider_id")),
        read_at: Some("identity/providers"),
        ..creation("create_identity_provider", "identity.providers", |_, marker, _| {
            let (issuer, domain) = ("http://127.0.0.1:9", format!("d{marker}.example.org"));
            let body = json!({
                "name": marker, "issuer": issuer, "client_id": "load", "domains": [domain],
            });
            Some(Draft::json("identity/providers", body))
        })
    },
    Creation {
        weight: 15,
        kept: &["reason"],
        event: Some(("finding.transitioned", "transition_id")),
        ..creation("transition_finding", "control_room.transitions", transition)
    },
    Creation {
        weight: 4,
        kept: &["title", "rationale", "finding_id"],
        event: Some(("remediation.program_created", "program_id")),
        read_at: Some("structural/remediation-programs"),
        ..creation("create_remediation_program", "remediation.programs", program)
    },
    Creation {
        weight: 2,
        kept: &[],
        read_at: Some("ownership/previews"),
        ..creation("create_ownership_preview", "ownership.previews", |tenant, _, _| {
            let body = json!({ "repository_id": tenant.repository });
            Some(Draft::json("ownership/previews", body))
        })
    },
    Creation {
        weight: 12,
        kept: &["filename", "repository_id", "compressed_bytes"],
        read_at: Some("uploads"),
        ..creation("create_upload", "uploads.uploads", |tenant, marker, rng| {
            let repository = tenant.recent("catalog.repositories", rng)?;
            Some(Draft::json(
                "uploads",
                json!({
                    "filename": format!("{marker}.json"), "content_type": "application/json",
                    "compressed_bytes": super::content(marker).len(), "repository_id": repository,
                    "purpose": "audit",
                }),
            ))
        })
    },
];

type Drafting = fn(&Tenant, &str, &mut StdRng) -> Option<Draft>;

const fn creation(operation: &'static str, collection: &'static str, draft: Drafting) -> Creation {
    Creation {
        operation,
        weight: 1,
        collection,
        id: "/id",
        kept: &[],
        event: None,
        most: usize::MAX,
        read_at: None,
        draft,
    }
}

/// Creates a dependency between contended groups, so that its assessment reads and writes documents
/// that other requests change.
fn dependency(tenant: &Tenant, marker: &str, rng: &mut StdRng) -> Option<Draft> {
    let groups = &tenant.contended["catalog.groups"];
    let from = rng.random_range(0..groups.len());
    let body = json!({
        "relationship_kind": format!("k{marker}"), "source_group_id": groups[from],
        "target_group_id": groups[(from + 1) % groups.len()],
    });
    (tenant.known("groups.dependencies") < 60).then(|| Draft::json("group-dependencies", body))
}

fn questionnaire(_: &Tenant, marker: &str, _: &mut StdRng) -> Option<Draft> {
    let file = format!("Ref,Question,Answer\nA1,Is {marker} encrypted?,=Yes\nA2,Who?,\n");
    let parts =
        [("title", None, marker.as_bytes()), ("file", Some("questions.csv"), file.as_bytes())];
    Some(Draft {
        body: Body::Form(form(&parts)),
        ..Draft::json("questionnaires/import", Value::Null)
    })
}

/// Creates a transition from the last known state and version of the finding.
fn transition(tenant: &Tenant, marker: &str, rng: &mut StdRng) -> Option<Draft> {
    let at = rng.random_range(0..tenant.findings.len().max(1));
    let finding = tenant.findings.get(at)?.lock().clone();
    let to = match finding.state.as_str() {
        "new" | "reopened" | "in_progress" => "triaged",
        "triaged" => "in_progress",
        _ => "reopened",
    };
    let body = json!({ "to_state": to, "reason": marker });
    let draft = Draft::json(format!("findings/{}/transitions", finding.id), body);
    Some(Draft { seen: Some(finding.version), ..draft })
}

fn program(tenant: &Tenant, marker: &str, rng: &mut StdRng) -> Option<Draft> {
    let at = rng.random_range(0..tenant.findings.len().max(1));
    let finding = tenant.findings.get(at)?.lock().id.clone();
    let body = json!({
        "finding_id": finding, "title": marker, "rationale": "One is enough.",
        "steps": [{
            "invariant_id": "none-open", "invariant_version": "1", "owner_scope": "shop/web",
            "repository_ids": [], "title": "Fix it",
            "verification_predicate": "findings.total < 0",
        }],
    });
    Some(Draft::json("structural/remediation-programs", body))
}
