//! Parts of the OpenAPI document that operations share: problem responses,
//! headers, parameters, and security schemes.

use serde_json::{Map, Value as Json, json};

/// Problem responses that operations share: status code, component name, and
/// description for clients.
const PROBLEMS: [(&str, &str, &str); 14] = [
    ("400", "MalformedRequest", "The request is broken at the level of HTTP."),
    ("401", "Unauthenticated", "There is no valid session."),
    ("403", "Forbidden", "The CSRF token, the role or the workspace's features forbid it."),
    ("404", "NotFound", "It is not there, or not the caller's to see."),
    ("409", "Conflict", "The state does not allow it, or a version is stale."),
    ("413", "PayloadTooLarge", "The body is larger than this operation takes."),
    ("415", "UnsupportedMediaType", "The body is of another media type or encoding."),
    ("422", "ValidationFailed", "A parameter or the body is wrong; `detail` names what."),
    ("429", "RateLimited", "Too many requests; `Retry-After` says when to come back."),
    ("500", "InternalError", "The service's own fault; the operators have the request id."),
    ("502", "AreaFault", "The part that answers this operation failed; nothing was kept."),
    ("503", "Unavailable", "Overloaded, or something it needs is away; see `Retry-After`."),
    ("504", "AreaTimeout", "The part that answers this operation took too long."),
    ("507", "InsufficientStorage", "The service's disk or the workspace is full; see `detail`."),
];

/// JSON Schema keyword of a response body with a resource version. Such a
/// response has an `ETag`; the keyword is not published.
pub(super) const VERSIONED: &str = "x-versioned";

/// JSON Schema keyword of the response body of an operation that reads
/// `If-Match` although it is a `POST`; the keyword is not published.
pub(super) const IF_MATCH: &str = "x-if-match";

/// Status codes of problems that occur only in operations that read the body of a
/// request.
const OF_BODIES: [&str; 2] = ["413", "415"];

/// Returns the `components` object of the OpenAPI document; `schemas` are its
/// schemas by name.
pub(super) fn all(mut schemas: Map<String, Json>) -> Json {
    schemas.insert("Problem".into(), problem_schema());
    json!({
        "schemas": schemas,
        "responses": shared_responses(),
        "parameters": shared_parameters(),
        "headers": shared_headers(),
        "securitySchemes": {
            "session": {"type": "apiKey", "in": "cookie", "name": "service_session",
                "description": "Set by POST /v1/auth/login."},
            "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token",
                "description": "`csrf_token` of GET /v1/auth/session; needed on every write by a \
                    session."},
            "access_token": {"type": "http", "scheme": "bearer",
                "description": "An access token of the workspace (`was_…`), for machines. It is \
                    sent instead of the cookie, never together with it, and needs no CSRF token."},
        },
    })
}

fn shared_headers() -> Json {
    let text =
        |description: &str| json!({"description": description, "schema": {"type": "string"}});
    json!({
        "ETag": {"description": "The version, for `If-Match` and `If-None-Match`.",
            "schema": {"type": "string"}},
        "IdempotentReplayed": {"description": "`true` if the response is a stored one.",
            "schema": {"type": "string", "enum": ["true"]}},
        "RequestId": text("Names this request to the operators."),
        "RateLimit": text("What is left of each policy."),
        "RateLimitPolicy": text("The policies that applied."),
        "RetryAfter": {"description": "Seconds to wait.", "schema": {"type": "integer"}},
        "SetCookie": text("The cookies of the session and of the device; a browser keeps them."),
        "WWWAuthenticate": text("The ways to authenticate."),
    })
}

/// Returns the headers that every response has: the request id and the rate limits.
pub(super) fn common_headers() -> Map<String, Json> {
    [
        ("X-Request-Id", "RequestId"),
        ("RateLimit", "RateLimit"),
        ("RateLimit-Policy", "RateLimitPolicy"),
    ]
    .map(|(name, component)| (name.to_owned(), header(component)))
    .into_iter()
    .collect()
}

/// Returns a reference to a shared header of the OpenAPI document.
pub(super) fn header(component: &str) -> Json {
    json!({"$ref": format!("#/components/headers/{component}")})
}

/// Returns references to the shared problem responses of one operation, by
/// status code.
pub(super) fn problem_responses(reads_body: bool) -> Map<String, Json> {
    PROBLEMS
        .iter()
        .filter(|(status, ..)| reads_body || !OF_BODIES.contains(status))
        .map(|(status, name, _)| {
            let reference = json!({"$ref": format!("#/components/responses/{name}")});
            ((*status).to_owned(), reference)
        })
        .collect()
}

/// Returns the header parameters of a webhook delivery.
pub(super) fn webhook_headers() -> Json {
    let header = |name: &str, description: &str| {
        json!({"name": name, "in": "header", "required": true, "description": description,
            "schema": {"type": "string"}})
    };
    json!([
        header("webhook-id", "The same at every attempt."),
        header("webhook-timestamp", "Seconds since 1970-01-01T00:00:00Z."),
        header("webhook-signature", "Space-separated `v1,` signatures: HMAC-SHA256, base64."),
    ])
}

fn shared_responses() -> Map<String, Json> {
    PROBLEMS
        .iter()
        .map(|(status, name, description)| {
            let mut headers = common_headers();
            if *status == "401" {
                headers.insert("WWW-Authenticate".into(), header("WWWAuthenticate"));
            }
            if matches!(*status, "429" | "503" | "507") {
                headers.insert("Retry-After".into(), header("RetryAfter"));
            }
            let response = json!({
                "description": description,
                "headers": headers,
                "content": {"application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"},
                }},
            });
            ((*name).to_owned(), response)
        })
        .chain([("NotModified".to_owned(), not_modified())])
        .collect()
}

fn not_modified() -> Json {
    let mut headers = common_headers();
    headers.insert("ETag".into(), header("ETag"));
    json!({
        "description": "The client has the current version, named by `If-None-Match`. No body.",
        "headers": headers,
    })
}

fn shared_parameters() -> Json {
    let key = |required: bool| {
        json!({"name": "Idempotency-Key", "in": "header", "required": required,
            "description": "Makes a retry safe: the same key and body give the first answer again, \
                with `Idempotent-Replayed: true`.",
            "schema": {"type": "string", "minLength": 8, "maxLength": 255,
                "pattern": "^[\\x21-\\x7E]+$"}})
    };
    json!({
        "WorkspaceId": {"name": "workspace_id", "in": "path", "required": true,
            "description": "The workspace.", "schema": {"type": "string", "format": "uuid"}},
        "IdempotencyKey": key(false),
        "RequiredIdempotencyKey": key(true),
        "IfMatch": {"name": "If-Match", "in": "header", "required": false,
            "description": "The version the change is meant for, as in `ETag`; a stale one is \
                refused with 409.",
            "schema": {"type": "string", "pattern": "^(W/)?\"[0-9]+(\\.[0-9a-f]+)?\"$"}},
        "IfNoneMatch": {"name": "If-None-Match", "in": "header", "required": false,
            "description": "Versions that the client has, as in `ETag`; if one of them is the \
                current one, the response is 304.",
            "schema": {"type": "string"}},
    })
}

fn problem_schema() -> Json {
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "type": "object",
        "title": "Problem",
        "description": "RFC 9457",
        "required":
            ["code", "detail", "hint", "instance", "request_id", "status", "title", "type"],
        "properties": {
            "code": text("For programs."),
            "detail": text("For people: what is wrong, each violation named."),
            "hint": text("What to do about it."),
            "instance": text("The request's path."),
            "request_id": text("Names this request to the operators."),
            "status": {"type": "integer"},
            "title": text("Fixed for each code."),
            "type": {"type": "string", "format": "uri", "description": "A page that explains it."},
        },
        "additionalProperties": false,
    })
}
