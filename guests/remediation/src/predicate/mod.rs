//! Verification predicates: CEL (Common Expression Language) expressions over the facts of an
//! audit. They are checked when a program is created, so that its author can fix errors.

mod bounds;
mod names;
mod patterns;

use std::collections::HashMap;

use area_sdk::text::ellipsize;
use cel::parser::PrattParser;
use cel::{Context, ExecutionError, IdedExpr, Value};
use serde_json::{Map, Value as Json, json};

/// Description of predicates for the OpenAPI document and for hints in errors.
pub(crate) const HINT: &str = "\
Send a CEL expression that is true or false, over `audit` {id, repository_id, branch_ref, \
commit_sha}, `findings` {total, open, new, reopened, gone, by_severity, by_rule}, where \
`by_severity` has {critical, high, medium, low, none}, `dependencies` {total, direct, vulnerable, \
advisories} and `ownership` {rules, paths, unowned}. `advisories` has the ids of advisories and \
their aliases, such as CVE ids. A predicate with a fact that the audit does not have is an error. \
An example is `findings.by_severity.critical == 0 && !('js/sql-injection' in findings.by_rule)`.";

/// Maximum length of the error text of a predicate's evaluation, in characters.
const MAX_ERROR_CHARS: usize = 500;

/// Result of evaluating a predicate for an audit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PredicateResult {
    /// The predicate is true.
    Holds,
    /// The predicate is false.
    Fails,
    /// The predicate could not be evaluated, for this reason.
    Error(String),
}

/// Checks that a predicate can be evaluated for audits.
///
/// # Errors
/// A description of the error in the predicate.
pub(crate) fn check(source: &str) -> Result<(), String> {
    let (expression, sample) = (parse(source)?, sample());
    names::check(&expression, &sample)?;
    // An error that does not depend on the data also occurs for an audit without findings. Errors
    // that depend on the data are reported by the audit.
    match evaluate_in(&expression, &sample) {
        Ok(Value::Bool(_)) => Ok(()),
        Ok(other) => Err(not_boolean(&other)),
        Err(error) if depends_on_data(&error) => Ok(()),
        Err(error) => Err(ellipsize(&error.to_string(), MAX_ERROR_CHARS)),
    }
}

/// Evaluates a predicate for an audit with these facts.
pub(crate) fn evaluate(source: &str, facts: &Map<String, Json>) -> PredicateResult {
    let expression = match parse(source) {
        Ok(expression) => expression,
        Err(error) => return PredicateResult::Error(error),
    };
    match evaluate_in(&expression, facts) {
        Ok(Value::Bool(true)) => PredicateResult::Holds,
        Ok(Value::Bool(false)) => PredicateResult::Fails,
        Ok(other) => PredicateResult::Error(not_boolean(&other)),
        Err(error) => PredicateResult::Error(ellipsize(&error.to_string(), MAX_ERROR_CHARS)),
    }
}

fn parse(source: &str) -> Result<IdedExpr, String> {
    bounds::before_parsing(source)?;
    let parser = PrattParser::new()
        .max_recursion_depth(bounds::MAX_NESTING)
        .max_expression_node_count(bounds::MAX_NODES)
        .error_reporting_limit(1);
    let expression = parser.parse(source).map_err(|errors| syntax_error(&errors))?;
    match bounds::after_parsing(&expression) {
        Ok(()) => Ok(expression),
        Err(error) => {
            bounds::dismantle(expression);
            Err(error)
        }
    }
}

fn syntax_error(errors: &cel::ParseErrors) -> String {
    let Some(error) = errors.errors.first() else { return "This is not a CEL expression.".into() };
    let message = error.msg.trim_start_matches("Syntax error: ");
    let text = match error.pos {
        (line @ 1.., column) => format!("At line {line}, column {column}: {message}."),
        _ => format!("{message}."),
    };
    ellipsize(&text, MAX_ERROR_CHARS)
}

fn evaluate_in(expression: &IdedExpr, facts: &Map<String, Json>) -> Result<Value, ExecutionError> {
    let mut context = Context::default();
    // Fails only if the library has a function with this name.
    context.add_function("matches", patterns::matcher()).ok();
    for (name, value) in facts {
        context.add_variable_from_value(name.as_str(), cel_value(value));
    }
    Value::resolve(expression, &context)
}

/// Converts a JSON value to a CEL value. A whole number becomes an `int`, as in CEL literals.
fn cel_value(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => items.iter().map(cel_value).collect::<Vec<_>>().into(),
        Json::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), cel_value(value)))
            .collect::<HashMap<String, Value>>()
            .into(),
    }
}

/// Whether evaluating the predicate with other facts might not have this error.
fn depends_on_data(error: &ExecutionError) -> bool {
    matches!(
        error,
        ExecutionError::NoSuchKey(_)
            | ExecutionError::IndexOutOfBounds(_)
            | ExecutionError::DivisionByZero(_)
            | ExecutionError::RemainderByZero(_)
            | ExecutionError::Overflow(..)
            | ExecutionError::FunctionError { .. }
    )
}

fn not_boolean(value: &Value) -> String {
    format!("The expression is of the type {}, not true or false.", value.type_of())
}

/// Returns sample facts, those of an audit without findings, for checks of predicates. An object
/// with members has all members that it can have; the members of an empty object depend on the
/// audit.
pub(crate) fn sample() -> Map<String, Json> {
    let severities = json!({ "critical": 0, "high": 0, "medium": 0, "low": 0, "none": 0 });
    let facts = json!({
        "audit": {
            "id": "00000000-0000-0000-0000-000000000000",
            "repository_id": "00000000-0000-0000-0000-000000000000",
            "branch_ref": "main",
            "commit_sha": "0000000000000000000000000000000000000000",
        },
        "findings": {
            "total": 0, "open": 0, "new": 0, "reopened": 0, "gone": 0,
            "by_severity": severities, "by_rule": {},
        },
        "dependencies": { "total": 0, "direct": 0, "vulnerable": 0, "advisories": [] },
        "ownership": { "rules": 0, "paths": 0, "unowned": 0 },
    });
    facts.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests;
