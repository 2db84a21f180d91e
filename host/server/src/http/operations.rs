//! The host's own operations, described for OpenAPI. A test compares this list with the router.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use super::auth::{login, mfa, password, register, session};
use super::{access_tokens, members, parameters, workspaces};
use assurance_contract::{HostOperation, OperationGroup};
use assurance_core::domain::manifest::Method;
use assurance_core::domain::role::Role;
use assurance_core::domain::time::Timestamp;

/// One day in milliseconds.
const DAY_MS: i64 = 86_400_000;

const AUTH: OperationGroup = OperationGroup {
    name: "auth",
    summary: "Sign-in, the session, the password and the second factor",
};

const WORKSPACES: OperationGroup =
    OperationGroup { name: "workspaces", summary: "Your workspaces and their members" };

/// Returns every operation of the router that is part of the API.
#[must_use]
pub fn host_operations() -> Vec<HostOperation> {
    let mut all = signing_in();
    all.extend(of_sessions());
    all.extend(second_factor());
    all.extend(of_workspaces());
    all.extend(of_members());
    all.extend(of_access_tokens());
    all
}

/// Returns the operations as a service that starts `now` documents them. Its
/// example of a request for an access token is accepted for half of the
/// `max_days` that a token may last, at most for 182 days.
#[must_use]
pub fn documented_operations(now: Timestamp, max_days: u32) -> Vec<HostOperation> {
    let days = i64::from((max_days / 2).clamp(1, 182));
    // Midnight (UTC), so that nodes that start on the same day have the same document.
    let micros = now.plus_ms(days * DAY_MS).0;
    let midnight = Timestamp(micros - micros.rem_euclid(DAY_MS * 1000));
    let mut operations = host_operations();
    for operation in &mut operations {
        if let Some(expires_at) = operation.example.pointer_mut("/request/expires_at") {
            *expires_at = Json::String(midnight.to_rfc3339());
        }
    }
    operations
}

fn signing_in() -> Vec<HostOperation> {
    vec![
        HostOperation {
            description: "Sets the `service_session` cookie, and `service_device`, by which the \
                next sign-in from this device is recognized: failed attempts from other devices \
                do not delay a client that sends it. An account with a second factor also needs \
                `code`. The response does not show whether e-mail, password or code is wrong. \
                Like all operations of `auth`, it ignores `Idempotency-Key`: its response is not \
                stored, and a repeated request creates another session.",
            signed_in: false,
            body: Some(schema::<login::LoginBody>()),
            response: Some(response_schema::<session::SessionView>()),
            sets_cookie: true,
            example: recorded(include_str!("examples/login.json")),
            ..operation(Method::Post, "/v1/auth/login", "login", "Sign in")
        },
        HostOperation {
            description: "For an invited person without an account. `token` is in the invitation \
                mail and proves that the address belongs to the person. Signs in like `POST \
                /v1/auth/login`. The invitation must still be accepted.",
            signed_in: false,
            success_status: 201,
            body: Some(schema::<register::NewAccount>()),
            response: Some(response_schema::<session::SessionView>()),
            sets_cookie: true,
            example: recorded(include_str!("examples/register.json")),
            ..operation(Method::Post, "/v1/auth/register", "register", "Create an account")
        },
        HostOperation {
            description: "Ends this session. Its cookie stops working on every node.",
            success_status: 204,
            sets_cookie: true,
            ..operation(Method::Post, "/v1/auth/logout", "logout", "Sign out")
        },
        HostOperation {
            description: "All other sessions end. Requires a recent sign-in: sign in again after \
                a 403. A wrong `current_password` counts as a failed sign-in.",
            success_status: 204,
            body: Some(schema::<password::PasswordChangeBody>()),
            example: recorded(include_str!("examples/change_password.json")),
            ..operation(
                Method::Post,
                "/v1/auth/password",
                "change_password",
                "Change your password",
            )
        },
    ]
}

fn of_sessions() -> Vec<HostOperation> {
    vec![
        HostOperation {
            in_contract: true,
            description: "The signed-in user, and a CSRF token for the session's writes.",
            response: Some(response_schema::<session::SessionView>()),
            example: recorded(include_str!("examples/get_session.json")),
            ..operation(Method::Get, "/v1/auth/session", "get_session", "The session")
        },
        HostOperation {
            in_contract: true,
            description: "Second factor, recovery codes and open sessions, newest first.",
            response: Some(response_schema::<session::SecurityView>()),
            example: recorded(include_str!("examples/get_security.json")),
            ..operation(Method::Get, "/v1/auth/security", "get_security", "Security status")
        },
        HostOperation {
            description: "Takes effect on every node from the next request on.",
            success_status: 204,
            parameters: vec![members::in_path(
                "session_id",
                "`sessions[].id` from the security status.",
            )],
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
            description: "Has no effect until it is confirmed with a code. A repeated request \
                replaces the secret; `Idempotency-Key` is ignored.",
            response: Some(response_schema::<mfa::EnrollmentView>()),
            example: recorded(include_str!("examples/enrol_authenticator.json")),
            ..operation(
                Method::Post,
                "/v1/auth/mfa/enrol",
                "enrol_authenticator",
                "Enrol an authenticator (RFC 6238)",
            )
        },
        HostOperation {
            description: "Returns ten recovery codes, which are shown only once, and a new \
                session id. All other sessions end. Requires a recent sign-in: sign in again \
                after a 403.",
            body: Some(schema::<mfa::CodeBody>()),
            response: Some(response_schema::<mfa::MfaConfirmationView>()),
            sets_cookie: true,
            example: recorded(include_str!("examples/confirm_authenticator.json")),
            ..operation(
                Method::Post,
                "/v1/auth/mfa/confirm",
                "confirm_authenticator",
                "Confirm the authenticator",
            )
        },
        HostOperation {
            description: "All other sessions end. Requires a recent sign-in: on 403, sign in again.",
            success_status: 204,
            body: Some(schema::<mfa::CodeBody>()),
            example: recorded(include_str!("examples/disable_authenticator.json")),
            ..operation(
                Method::Post,
                "/v1/auth/mfa/disable",
                "disable_authenticator",
                "Remove the authenticator",
            )
        },
        HostOperation {
            description: "The old codes stop working. The new codes are shown only once; \
                `Idempotency-Key` is ignored. Send the authenticator's next code to get new \
                ones.",
            body: Some(schema::<mfa::CodeBody>()),
            response: Some(response_schema::<mfa::RecoveryCodes>()),
            example: recorded(include_str!("examples/renew_recovery_codes.json")),
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
            tag: WORKSPACES,
            description: "Sorted by slug.",
            parameters: parameters::page_parameters(),
            response: Some(response_schema::<workspaces::WorkspacePage>()),
            example: recorded(include_str!("examples/list_workspaces.json")),
            ..operation(Method::Get, "/v1/workspaces", "list_workspaces", "Your workspaces")
        },
        HostOperation {
            tag: WORKSPACES,
            description: "The caller becomes its owner.",
            idempotent: true,
            success_status: 201,
            body: Some(schema::<workspaces::CreateWorkspaceBody>()),
            response: Some(response_schema::<workspaces::WorkspaceView>()),
            example: recorded(include_str!("examples/create_workspace.json")),
            ..operation(Method::Post, "/v1/workspaces", "create_workspace", "Create a workspace")
        },
    ]
}

fn of_members() -> Vec<HostOperation> {
    vec![
        HostOperation {
            tag: WORKSPACES,
            least_role: Some(Role::Viewer),
            description: "Sorted by e-mail. Every member may read the list.",
            takes_access_token: true,
            parameters: [vec![members::workspace_parameter()], parameters::page_parameters()]
                .concat(),
            response: Some(response_schema::<members::MemberPage>()),
            example: recorded(include_str!("examples/list_members.json")),
            ..operation(
                Method::Get,
                "/v1/workspaces/{workspace_id}/members",
                "list_members",
                "Members of a workspace",
            )
        },
        HostOperation {
            tag: WORKSPACES,
            least_role: Some(Role::Viewer),
            description: "Admins can remove viewers, members and admins. Owners can remove every \
                member. Every member may leave. Removing the last owner who can sign in returns \
                409. Afterwards requests of the removed user in this workspace return 404; other \
                nodes apply it within one second.",
            idempotent: true,
            success_status: 204,
            parameters: vec![
                members::workspace_parameter(),
                members::in_path(
                    "user_id",
                    "`user_id` from the list of members; your own id to leave.",
                ),
            ],
            ..operation(
                Method::Delete,
                "/v1/workspaces/{workspace_id}/members/{user_id}",
                "remove_member",
                "Remove a member, or leave",
            )
        },
    ]
}

fn of_access_tokens() -> Vec<HostOperation> {
    vec![
        HostOperation {
            tag: WORKSPACES,
            least_role: Some(Role::Admin),
            description: "For admins. A machine sends the token as `Authorization: Bearer` to \
                operations of this workspace; requests act as you, with no higher role than \
                `role` and your present one. `token` is shown once: no `Idempotency-Key` brings it \
                back, so revoke a token whose response was lost. Needs a session that began a \
                short time ago: sign in again after a 403. More tokens than the workspace may have \
                return 409.",
            success_status: 201,
            parameters: vec![members::workspace_parameter()],
            body: Some(schema::<access_tokens::AccessTokenBody>()),
            response: Some(response_schema::<access_tokens::CreatedAccessToken>()),
            example: recorded(include_str!("examples/create_access_token.json")),
            ..operation(
                Method::Post,
                "/v1/workspaces/{workspace_id}/access-tokens",
                "create_access_token",
                "Create an access token",
            )
        },
        HostOperation {
            tag: WORKSPACES,
            least_role: Some(Role::Admin),
            description: "For admins. Newest first; an expired token is listed for 30 days.",
            parameters: [vec![members::workspace_parameter()], parameters::page_parameters()]
                .concat(),
            response: Some(response_schema::<access_tokens::AccessTokenPage>()),
            example: recorded(include_str!("examples/list_access_tokens.json")),
            ..operation(
                Method::Get,
                "/v1/workspaces/{workspace_id}/access-tokens",
                "list_access_tokens",
                "Access tokens of a workspace",
            )
        },
        HostOperation {
            tag: WORKSPACES,
            least_role: Some(Role::Admin),
            description: "For admins, whoever created the token. The next request with it returns \
                401, on other nodes within a second.",
            success_status: 204,
            parameters: vec![
                members::workspace_parameter(),
                members::in_path("token_id", "As `id` of the list of access tokens."),
            ],
            ..operation(
                Method::Delete,
                "/v1/workspaces/{workspace_id}/access-tokens/{token_id}",
                "revoke_access_token",
                "Revoke an access token",
            )
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
        tag: AUTH,
        summary,
        description: "",
        in_contract: false,
        signed_in: true,
        takes_access_token: false,
        least_role: None,
        parameters: Vec::new(),
        idempotent: false,
        body: None,
        success_status: 200,
        response: None,
        sets_cookie: false,
        example: Json::Null,
    }
}

/// Parses an example, which the end-to-end tests record and check.
fn recorded(example: &str) -> Json {
    serde_json::from_str(example).unwrap_or_default()
}

fn schema<T: JsonSchema>() -> Json {
    schemars::schema_for!(T).to_value()
}

/// Returns the schema of a response. Every member is required; an unknown value
/// is null.
fn response_schema<T: JsonSchema>() -> Json {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

#[cfg(test)]
mod tests {
    use assurance_contract::{ContractLimits, fixtures};
    use serde_json::json;

    use super::*;

    /// Returns the routes of `router.rs` under `/v1`, by method.
    fn routed() -> Vec<(String, &'static str)> {
        let page = include_str!("router.rs");
        let mut found = Vec::new();
        for line in page.lines().filter_map(|line| line.trim().strip_prefix(".route(\"/v1")) {
            let (path, handlers) = line.split_once('"').expect("a path");
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
                if handlers.contains(&format!("{}(", method.to_ascii_lowercase())) {
                    found.push((format!("/v1{path}"), method));
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn the_document_lists_exactly_what_the_router_answers() {
        let operations = host_operations();
        let listed = operations.iter().map(|one| (one.path.to_owned(), one.method.as_str()));
        let mut listed: Vec<_> = listed.collect();
        listed.sort();
        assert_eq!(listed, routed());
    }

    #[test]
    fn every_member_of_a_response_is_required() {
        fn check(schema: &Json, operation: &str) {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            for (member, _) in schema["properties"].as_object().into_iter().flatten() {
                assert!(required.iter().any(|one| one == member), "{operation}: {member}");
            }
            match schema {
                Json::Object(members) => members.values().for_each(|part| check(part, operation)),
                Json::Array(items) => items.iter().for_each(|part| check(part, operation)),
                _ => {}
            }
        }
        for operation in host_operations() {
            check(&operation.response.unwrap_or_default(), operation.operation_id);
        }
    }

    #[test]
    fn the_example_of_an_access_token_expires_within_the_days_that_are_allowed() {
        let now = Timestamp(1_795_000_000_123_456);
        for max_days in [1, 2, 3, 365, u32::MAX] {
            let operations = documented_operations(now, max_days);
            let mut examples = operations.iter().map(|operation| &operation.example["request"]);
            let example = examples.find(|example| example["expires_at"].is_string()).unwrap();
            let expires_at: Timestamp =
                serde_json::from_value(example["expires_at"].clone()).unwrap();
            let last = now.plus_ms(i64::from(max_days) * DAY_MS);
            assert!(now < expires_at && expires_at <= last, "{max_days}: {expires_at:?}");
        }
    }

    #[test]
    fn an_operation_of_a_workspace_has_a_least_role() {
        for operation in host_operations() {
            let of_workspace = operation.path.contains("{workspace_id}");
            assert_eq!(operation.least_role.is_some(), of_workspace, "{}", operation.path);
        }
    }

    #[test]
    fn no_area_takes_a_literal_where_the_host_has_a_parameter() {
        let operations = host_operations();
        let paths = operations.iter().filter(|one| one.path.ends_with('}'));
        for (parent, _) in paths.filter_map(|one| one.path.rsplit_once('/')) {
            let route = fixtures::route("export", &format!("{parent}/export"));
            let manifest = fixtures::manifest("notes", vec![route]);
            let refused = assurance_contract::compile(&manifest, &[], &ContractLimits::default());
            let refused = refused.map(drop).unwrap_err().to_string();
            assert!(refused.contains("is the host's"), "{parent}: {refused}");
        }
    }

    #[test]
    fn every_body_schema_compiles() {
        use crate::http::extract::BodySchema;

        let schemas = [
            login::LoginBody::schema(),
            mfa::CodeBody::schema(),
            password::PasswordChangeBody::schema(),
            register::NewAccount::schema(),
            workspaces::CreateWorkspaceBody::schema(),
            access_tokens::AccessTokenBody::schema(),
        ];
        assert!(schemas.iter().all(|schema| !schema.is_valid(&json!({"unknown": 1}))));
    }
}
