//! Verification predicates: expressions in the Common Expression Language over
//! the facts of an audit. One is checked when its program is made, so that what
//! cannot be evaluated is told to the person who can mend it.

mod bounds;
mod names;
mod patterns;

use std::collections::HashMap;

use cel::parser::PrattParser;
use cel::{Context, ExecutionError, IdedExpr, Value};
use serde_json::{Map, Value as Json, json};

/// What a predicate may say, for the documentation and for hints.
pub(crate) const HINT: &str = "\
Send a CEL expression that is true or false, over `audit` {id, repository_id, branch_ref, \
commit_sha}, `findings` {total, open, new, reopened, gone, by_severity, by_rule}, where \
`by_severity` has {critical, high, medium, low, none}, `dependencies` {total, direct, vulnerable, \
advisories} and `ownership` {rules, paths, unowned}; such as \
`findings.by_severity.critical == 0 && !('js/sql-injection' in findings.by_rule)`.";

/// The longest text of an evaluation's error.
const MAX_ERROR_CHARS: usize = 500;

/// What came of an evaluation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It is true.
    Holds,
    /// It is false.
    Fails,
    /// It is neither, and why.
    Error(String),
}

/// Is this a predicate that audits can evaluate?
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(source: &str) -> Result<(), String> {
    let (expression, sample) = (parse(source)?, sample());
    names::check(&expression, &sample)?;
    // What fails for every audit fails for one without findings, too; what
    // depends on the audit's data is found out by the audit.
    match evaluate_in(&expression, &sample) {
        Ok(Value::Bool(_)) => Ok(()),
        Ok(other) => Err(not_boolean(&other)),
        Err(error) if depends_on_data(&error) => Ok(()),
        Err(error) => Err(shortened(&error.to_string())),
    }
}

/// Does the predicate hold for these facts?
pub(crate) fn evaluate(source: &str, facts: &Map<String, Json>) -> Verdict {
    let expression = match parse(source) {
        Ok(expression) => expression,
        Err(error) => return Verdict::Error(error),
    };
    match evaluate_in(&expression, facts) {
        Ok(Value::Bool(true)) => Verdict::Holds,
        Ok(Value::Bool(false)) => Verdict::Fails,
        Ok(other) => Verdict::Error(not_boolean(&other)),
        Err(error) => Verdict::Error(shortened(&error.to_string())),
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
    let Some(error) = errors.errors.first() else { return "This is no CEL expression.".into() };
    let message = error.msg.trim_start_matches("Syntax error: ");
    shortened(&match error.pos {
        (line @ 1.., column) => format!("At line {line}, column {column}: {message}."),
        _ => format!("{message}."),
    })
}

fn evaluate_in(expression: &IdedExpr, facts: &Map<String, Json>) -> Result<Value, ExecutionError> {
    let mut context = Context::default();
    // Fails only for a name that the library's own functions have.
    context.add_function("matches", patterns::matcher()).ok();
    for (name, value) in facts {
        context.add_variable_from_value(name.as_str(), cel_value(value));
    }
    Value::resolve(expression, &context)
}

/// A JSON value as CEL sees it; a whole number is an `int`, as its literals are.
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

/// Could the expression still come to a verdict with other facts?
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

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The facts of an audit that found nothing. An object with members names all
/// that there ever are; one without depends on what is found.
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
