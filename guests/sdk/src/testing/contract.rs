//! The checks that a service makes around a handler, by the manifest: the role,
//! the parameters and the body before it, the reply or the problem after it.

use std::cell::OnceCell;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use uuid::Uuid;

use crate::problem::{Problem, Violation};
use crate::wit;
use crate::wit::assurance::area::manifest::{
    BodyKind, FormPart, Idempotency, IntegerBounds, ParameterType, Route, TextBounds,
    WorkspaceSource,
};
use crate::wit::assurance::area::types::{Body, Parameter, Part, ProblemKind, Reply};

/// A route whose schemas are compiled when they are first needed.
pub(super) struct CheckedRoute {
    pub(super) route: Route,
    body: OnceCell<Validator>,
    response: OnceCell<Validator>,
}

impl CheckedRoute {
    pub(super) fn new(route: Route) -> Self {
        Self { route, body: OnceCell::new(), response: OnceCell::new() }
    }

    /// Adds the defaults of parameters to a request.
    ///
    /// # Errors
    /// The refusal of a request that the handler must not see.
    pub(super) fn admit(&self, request: &mut wit::Request) -> Result<(), Problem> {
        let (own, least) = (request.actor.role, self.route.least_role);
        if own < least {
            let detail = format!("This operation needs the role {least:?}, not {own:?}.");
            return Err(Problem::permission_denied(detail));
        }
        let mut wrong = check_parameters(&self.route, &mut request.parameters);
        let needs_key =
            matches!(self.route.idempotency, Idempotency::Required | Idempotency::KeptByArea);
        if needs_key && request.idempotency_key.is_none() {
            wrong.push(violation("Idempotency-Key", "is required"));
        }
        wrong.extend(self.check_body(&request.body));
        if wrong.is_empty() {
            return Ok(());
        }
        let named = wrong.iter().map(|one| format!("{} {}", one.pointer, one.message));
        let detail = named.collect::<Vec<_>>().join("; ");
        Err(Problem { violations: wrong, ..Problem::new(ProblemKind::ValidationFailed, detail) })
    }

    fn check_body(&self, body: &Body) -> Vec<Violation> {
        match (&self.route.body, body) {
            (BodyKind::Json(schema), Body::Json(text)) => match serde_json::from_str(text) {
                Ok(value) => violations(self.body.get_or_init(|| self.compile(schema)), &value),
                Err(error) => vec![violation("", &format!("is not JSON: {error}"))],
            },
            (BodyKind::Multipart(declared), Body::Form(parts)) => check_form(declared, parts),
            (BodyKind::None, _) | (BodyKind::Blob, Body::Blob(_)) => Vec::new(),
            _ => vec![violation("", "is required")],
        }
    }

    /// # Panics
    /// If the reply breaks the route's response schema.
    #[track_caller]
    pub(super) fn check_reply(&self, reply: &Reply) {
        let operation = &self.route.operation_id;
        let (schema, body) = match (&self.route.response, &reply.body) {
            (Some(schema), Some(body)) => (schema, body),
            (None, None) => return,
            (Some(_), None) => panic!("{operation} replied without a body"),
            (None, Some(_)) => panic!("{operation} replied with a body; its route declares none"),
        };
        let value = serde_json::from_str(body).expect("a reply of JSON");
        let found = violations(self.response.get_or_init(|| self.compile(schema)), &value);
        if let Some(Violation { pointer, message }) = found.first() {
            panic!("{operation}: its reply breaks the response schema: {pointer} {message}");
        }
    }

    /// # Panics
    /// If the route does not declare the problem's code.
    #[track_caller]
    pub(super) fn check_problem(&self, problem: &Problem) {
        let Some(code) = &problem.code else { return };
        assert!(
            self.route.problem_codes.contains(code),
            "{}: the route does not declare the problem code {code:?}; add it with `.problems(…)`",
            self.route.operation_id
        );
    }

    /// Compiles a JSON Schema in the same way as the host (`host/contract/src/schema.rs`).
    fn compile(&self, schema: &str) -> Validator {
        let schema: Value = serde_json::from_str(schema).expect("a schema of JSON");
        jsonschema::draft202012::options()
            .should_validate_formats(true)
            .with_pattern_options(PatternOptions::regex())
            .build(&schema)
            .unwrap_or_else(|error| panic!("{}: {error}", self.route.operation_id))
    }
}

fn violation(pointer: &str, message: &str) -> Violation {
    Violation { pointer: pointer.to_owned(), message: message.to_owned() }
}

fn violations(schema: &Validator, value: &Value) -> Vec<Violation> {
    schema.iter_errors(value).flat_map(|error| explain(&error)).collect()
}

/// Returns the violations of a schema for the problem: one for each missing or unknown member, one
/// for any other error.
fn explain(error: &ValidationError<'_>) -> Vec<Violation> {
    let at = error.instance_path().as_str();
    let below = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let unknown = |name: &String| violation(&below(name), "is not a declared member");
            unexpected.iter().map(unknown).collect()
        }
        ValidationErrorKind::Required { property } => {
            vec![violation(&below(property.as_str().unwrap_or_default()), "is required")]
        }
        _ => vec![violation(at, &error.to_string())],
    }
}

fn check_parameters(route: &Route, given: &mut Vec<Parameter>) -> Vec<Violation> {
    given.retain(|one| !matches!(&*one.value, "null" | "\"\""));
    let is_declared = |name: &str| {
        let link =
            matches!(&route.workspace, WorkspaceSource::SignedLink(by) if by.parameter == name);
        link || route.parameters.iter().any(|declared| declared.name == name)
    };
    let unknown = given.iter().filter(|parameter| !is_declared(&parameter.name));
    let mut wrong: Vec<Violation> = unknown
        .map(|parameter| violation(&parameter.name, "is not a parameter of this operation"))
        .collect();
    for declared in &route.parameters {
        let name = &declared.name;
        let value = given.iter().find(|parameter| parameter.name == *name);
        match (value.map(|parameter| parameter.value.clone()), declared.default.clone()) {
            (Some(value), _) if !is_value(&declared.kind, &value) => {
                wrong.push(violation(name, &requirement(&declared.kind)));
            }
            (None, Some(value)) => given.push(Parameter { name: name.clone(), value }),
            (None, None) if declared.required => wrong.push(violation(name, "is required")),
            _ => {}
        }
    }
    wrong
}

fn is_value(kind: &ParameterType, value: &str) -> bool {
    let value: Value = serde_json::from_str(value).unwrap_or_default();
    let text = value.as_str();
    match kind {
        ParameterType::Text(bounds) => text.is_some_and(|text| {
            let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
            (bounds.min_length..=bounds.max_length).contains(&length)
        }),
        ParameterType::Integer(bounds) => {
            value.as_i64().is_some_and(|value| (bounds.minimum..=bounds.maximum).contains(&value))
        }
        ParameterType::Boolean => value.is_boolean(),
        ParameterType::Uuid => text.is_some_and(|text| text.parse::<Uuid>().is_ok()),
        ParameterType::Timestamp => {
            text.is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok())
        }
        ParameterType::OneOf(words) => {
            text.is_some_and(|text| words.iter().any(|word| word == text))
        }
    }
}

/// Returns what a parameter of this kind must be, to follow its name.
fn requirement(kind: &ParameterType) -> String {
    match kind {
        ParameterType::Text(TextBounds { min_length, max_length }) => {
            format!("must have {min_length} to {max_length} characters")
        }
        ParameterType::Integer(IntegerBounds { minimum, maximum }) => {
            format!("must be an integer from {minimum} to {maximum}")
        }
        ParameterType::Boolean => "must be true or false".to_owned(),
        ParameterType::Uuid => "must be a UUID".to_owned(),
        ParameterType::Timestamp => "must be an RFC 3339 date-time".to_owned(),
        ParameterType::OneOf(words) => format!("must be one of {}", words.join(", ")),
    }
}

fn check_form(declared: &[FormPart], parts: &[Part]) -> Vec<Violation> {
    let is_unknown = |part: &&Part| !declared.iter().any(|one| one.name == part.name);
    let unknown = parts.iter().filter(is_unknown);
    let is_missing =
        |one: &&FormPart| one.required && !parts.iter().any(|part| part.name == one.name);
    let missing = declared.iter().filter(is_missing);
    unknown
        .map(|part| violation(&part.name, "is not a part of this operation"))
        .chain(missing.map(|part| violation(&part.name, "is required")))
        .collect()
}
