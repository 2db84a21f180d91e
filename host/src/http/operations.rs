//! The host's own operations, as the OpenAPI document tells them. A test holds
//! this list against the router.

use schemars::JsonSchema;
use serde_json::Value as Json;

use super::auth::{login, mfa, register, session};
use super::{parameters, workspaces};
use crate::domain::manifest::{Method, ParameterKind, ParameterPlace, ParameterSpec};
use crate::registry::HostOperation;

/// Everything the router answers that is part of the API.
#[must_use]
pub fn host_operations() -> Vec<HostOperation> {
    let mut all = signing_in();
    all.extend(of_sessions());
    all.extend(second_factor());
    all.extend(of_workspaces());
    all
}

fn signing_in() -> Vec<HostOperation> {
    vec![
        HostOperation {
            description: "Sets the `service_session` cookie, and `service_device`, by which the \
                next sign-in from this device is recognized: a client that sends it back does not \
                wait because of failures elsewhere. An account with a second factor also \
                needs `code`. Wrong e-mail, password and code are told alike. Like every operation of \
                `auth`, it takes no notice of an `Idempotency-Key`: what it answers with is shown \
                once and not kept, and sent again it only makes another session.",
            signed_in: false,
            body: Some(schema::<login::Login>()),
            response: Some(schema::<session::SessionView>()),
            ..operation(Method::Post, "/v1/auth/login", "login", "Sign in")
        },
        HostOperation {
            description: "For who was invited and has no account: `token` comes with the mail of \
                the invitation and proves that its address is theirs. Signs in, as \
                `POST /v1/auth/login` does; the invitation still wants to be accepted.",
            signed_in: false,
            success_status: 201,
            body: Some(schema::<register::NewAccount>()),
            response: Some(schema::<session::SessionView>()),
            ..operation(Method::Post, "/v1/auth/register", "register", "Make an account")
        },
        HostOperation {
            success_status: 204,
            ..operation(Method::Post, "/v1/auth/logout", "logout", "Sign out")
        },
    ]
}

fn of_sessions() -> Vec<HostOperation> {
    vec![
        HostOperation {
            in_contract: true,
            description: "The signed-in user, and a CSRF token for the session's writes.",
            response: Some(schema::<session::SessionView>()),
            ..operation(Method::Get, "/v1/auth/session", "get_session", "The session")
        },
        HostOperation {
            in_contract: true,
            description: "Second factor, recovery codes and open sessions, newest first.",
            response: Some(schema::<session::SecurityView>()),
            ..operation(Method::Get, "/v1/auth/security", "get_security", "Security status")
        },
        HostOperation {
            description: "Works on every node from the next request.",
            success_status: 204,
            parameters: vec![ParameterSpec {
                name: "session_id".to_owned(),
                place: ParameterPlace::Path,
                summary: "As `sessions[].id` of the security status.".to_owned(),
                kind: ParameterKind::Uuid,
                required: true,
                default: None,
            }],
            ..operation(
                Method::Delete,
                "/v1/auth/sessions/{session_id}",
                "revoke_session",
                "End one of your sessions",
            )
        },
    ]
}

fn second_factor() -> Vec<HostOperation> {
    vec![
        HostOperation {
            description: "Counts for nothing until confirmed with a code. Sent again, it gives \
                another secret in place of the first; no `Idempotency-Key` brings that back.",
            response: Some(schema::<mfa::EnrolmentView>()),
            ..operation(
                Method::Post,
                "/v1/auth/mfa/enrol",
                "enrol_authenticator",
                "Begin with an authenticator (RFC 6238)",
            )
        },
        HostOperation {
            description: "Answers with ten recovery codes, shown once, and a new session id. All \
                other sessions end. Needs a session that began a short time ago: sign in again \
                after a 403.",
            body: Some(schema::<mfa::CodeGiven>()),
            response: Some(schema::<mfa::ConfirmedView>()),
            ..operation(
                Method::Post,
                "/v1/auth/mfa/confirm",
                "confirm_authenticator",
                "Confirm the authenticator",
            )
        },
        HostOperation {
            description: "All other sessions end. Needs a session that began a short time ago: \
                sign in again after a 403.",
            success_status: 204,
            body: Some(schema::<mfa::CodeGiven>()),
            ..operation(
                Method::Post,
                "/v1/auth/mfa/disable",
                "disable_authenticator",
                "Remove the authenticator",
            )
        },
        HostOperation {
            description: "The old ones stop working. Shown once: no `Idempotency-Key` brings \
                them back, but the authenticator's next code brings new ones.",
            body: Some(schema::<mfa::CodeGiven>()),
            response: Some(schema::<mfa::RecoveryCodes>()),
            ..operation(
                Method::Post,
                "/v1/auth/recovery-codes",
                "renew_recovery_codes",
                "Replace the recovery codes",
            )
        },
    ]
}

fn of_workspaces() -> Vec<HostOperation> {
    vec![
        HostOperation {
            tag: "workspaces",
            description: "By slug.",
            parameters: parameters::page_parameters(),
            response: Some(schema::<workspaces::WorkspacePage>()),
            ..operation(Method::Get, "/v1/workspaces", "list_workspaces", "Your workspaces")
        },
        HostOperation {
            tag: "workspaces",
            description: "The caller becomes its owner.",
            idempotent: true,
            success_status: 201,
            body: Some(schema::<workspaces::NewWorkspace>()),
            response: Some(schema::<workspaces::WorkspaceView>()),
            ..operation(Method::Post, "/v1/workspaces", "create_workspace", "Make a workspace")
        },
    ]
}

fn operation(
    method: Method,
    path: &'static str,
    operation_id: &'static str,
    summary: &'static str,
) -> HostOperation {
    HostOperation {
        method,
        path,
        operation_id,
        tag: "auth",
        summary,
        description: "",
        in_contract: false,
        signed_in: true,
        parameters: Vec::new(),
        idempotent: false,
        body: None,
        success_status: 200,
        response: None,
    }
}

fn schema<T: JsonSchema>() -> Json {
    schemars::schema_for!(T).to_value()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What `router.rs` says it answers under `/v1`, method by method.
    fn routed() -> Vec<(String, &'static str)> {
        let page = include_str!("router.rs");
        let mut found = Vec::new();
        for line in page.lines().filter_map(|line| line.trim().strip_prefix(".route(\"/v1")) {
            let (path, handlers) = line.split_once('"').expect("a path");
            for method in ["get", "post", "put", "patch", "delete"] {
                if handlers.contains(&format!("{method}(")) {
                    found.push((format!("/v1{path}"), method));
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn the_document_lists_exactly_what_the_router_answers() {
        let mut listed: Vec<_> = host_operations()
            .iter()
            .map(|operation| {
                let method = match operation.method {
                    Method::Get => "get",
                    Method::Post => "post",
                    Method::Put => "put",
                    Method::Patch => "patch",
                    Method::Delete => "delete",
                };
                (operation.path.to_owned(), method)
            })
            .collect();
        listed.sort();
        assert_eq!(listed, routed());
    }

    #[test]
    fn every_body_schema_compiles() {
        use crate::http::extract::HostBody;

        let validators = [
            login::Login::validator(),
            mfa::CodeGiven::validator(),
            register::NewAccount::validator(),
            workspaces::NewWorkspace::validator(),
        ];
        assert!(validators.iter().all(|validator| !validator.is_valid(&json!({"unknown": 1}))));
    }
}
