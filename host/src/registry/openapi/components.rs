//! The document's shared parts, and the named schemas of areas.

use serde_json::{Map, Value as Json, json};

/// The statuses an operation may refuse with, and their names: the seven of
/// the contract, what a body may be refused for, and the faults.
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
    ("507", "InsufficientStorage", "The service's disk is full; see `Retry-After`."),
];

/// Those that only a request with a body meets.
const OF_BODIES: [&str; 2] = ["413", "415"];

/// Named schemas, gathered while operations are described.
pub(super) struct Components {
    schemas: Map<String, Json>,
}

impl Components {
    pub(super) fn new() -> Self {
        let mut schemas = Map::new();
        schemas.insert("Problem".into(), problem_schema());
        Self { schemas }
    }

    /// Makes a self-contained schema fit into the document: its definitions
    /// (and itself, where it has a title) become named components.
    pub(super) fn hoist(&mut self, owner: &str, usage: &str, schema: &Json) -> Json {
        let mut schema = schema.clone();
        let mut renamed = Map::new();
        let Json::Object(members) = &mut schema else { return schema };
        members.remove("$schema");
        members.remove("$id");
        let definitions = match members.remove("$defs") {
            Some(Json::Object(definitions)) => definitions,
            _ => Map::new(),
        };
        for (name, definition) in &definitions {
            let component = self.free_name(owner, usage, name, definition, &definitions);
            renamed.insert(name.clone(), Json::String(component));
        }
        let title = members.get("title").and_then(Json::as_str).unwrap_or(usage).to_owned();
        let root = self.free_name(owner, usage, &title, &schema, &definitions);
        for (name, mut definition) in definitions {
            redirect(&mut definition, &renamed, &root);
            if let Some(Json::String(component)) = renamed.get(&name) {
                self.schemas.insert(component.clone(), definition);
            }
        }
        redirect(&mut schema, &renamed, &root);
        self.schemas.insert(root.clone(), schema);
        json!({"$ref": format!("#/components/schemas/{root}")})
    }

    /// A component's name: short where nothing else has it, else with the
    /// usage in it.
    fn free_name(
        &self,
        owner: &str,
        usage: &str,
        name: &str,
        schema: &Json,
        siblings: &Map<String, Json>,
    ) -> String {
        let short = component_name(&format!("{owner}.{name}"));
        let Some(there) = self.schemas.get(&short) else { return short };
        let mut same = schema.clone();
        let renames = siblings.keys().map(|sibling| {
            (sibling.clone(), Json::String(component_name(&format!("{owner}.{sibling}"))))
        });
        redirect(&mut same, &renames.collect(), &short);
        if *there == same { short } else { component_name(&format!("{owner}.{usage}.{name}")) }
    }

    pub(super) fn into_json(self) -> Json {
        json!({
            "schemas": self.schemas,
            "responses": shared_responses(),
            "parameters": shared_parameters(),
            "headers": {
                "RequestId": {"description": "Names this request to the operators.",
                    "schema": {"type": "string"}},
                "RateLimit": {"description": "What is left of each policy.",
                    "schema": {"type": "string"}},
                "RateLimitPolicy": {"description": "The policies that applied.",
                    "schema": {"type": "string"}},
                "RetryAfter": {"description": "Seconds to wait.", "schema": {"type": "integer"}},
            },
            "securitySchemes": {
                "session": {"type": "apiKey", "in": "cookie", "name": "service_session",
                    "description": "Set by POST /v1/auth/login."},
                "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token",
                    "description": "`csrf_token` of GET /v1/auth/session; needed on every write."},
            },
        })
    }
}

/// References to the shared problem responses of an operation.
pub(super) fn problem_responses(takes_body: bool) -> Map<String, Json> {
    PROBLEMS
        .iter()
        .filter(|(status, ..)| takes_body || !OF_BODIES.contains(status))
        .map(|(status, name, _)| {
            let reference = json!({"$ref": format!("#/components/responses/{name}")});
            ((*status).to_owned(), reference)
        })
        .collect()
}

/// What a webhook delivery carries beside its body.
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
            let mut headers = json!({"X-Request-Id": {"$ref": "#/components/headers/RequestId"}});
            if matches!(*status, "429" | "503" | "507") {
                headers["Retry-After"] = json!({"$ref": "#/components/headers/RetryAfter"});
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
        .collect()
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
            "schema": {"type": "string", "pattern": "^\"[0-9]+\"$"}},
    })
}

fn problem_schema() -> Json {
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "type": "object",
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

/// Points `#/$defs/NAME` and `#` at components.
fn redirect(schema: &mut Json, renamed: &Map<String, Json>, root: &str) {
    match schema {
        Json::Object(members) => {
            if let Some(Json::String(target)) = members.get_mut("$ref") {
                *target = redirected(target, renamed, root);
            }
            members.values_mut().for_each(|member| redirect(member, renamed, root));
        }
        Json::Array(items) => items.iter_mut().for_each(|item| redirect(item, renamed, root)),
        _ => {}
    }
}

fn redirected(target: &str, renamed: &Map<String, Json>, root: &str) -> String {
    if let Some(path) = target.strip_prefix("#/$defs/") {
        let (name, rest) = path.find('/').map_or((path, ""), |slash| path.split_at(slash));
        if let Some(Json::String(component)) = renamed.get(name) {
            return format!("#/components/schemas/{component}{rest}");
        }
    }
    match target.strip_prefix('#') {
        Some(rest) if !rest.starts_with("/components/") => {
            format!("#/components/schemas/{root}{rest}")
        }
        _ => target.to_owned(),
    }
}

fn component_name(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    text.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}
