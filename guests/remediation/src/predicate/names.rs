//! Checks the names in a predicate: an unknown fact or function would be an error for every audit.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue, operators};
use serde_json::{Map, Value as Json};

use super::bounds::children;
use super::patterns;

/// Names of CEL types, which a predicate can compare with `type(x)`.
const TYPES: [&str; 10] =
    ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"];

/// CEL standard functions that predicates may call.
pub(super) const FUNCTIONS: [&str; 13] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "type",
    "dyn",
];

type NameCheckResult = Result<(), String>;

/// Checks that a predicate uses only these facts and known functions.
pub(super) fn check(expression: &IdedExpr, facts: &Map<String, Json>) -> NameCheckResult {
    NameChecker { facts, bound: Vec::new() }.visit(expression)
}

/// Finds the names in a predicate that are neither facts nor bound variables.
struct NameChecker<'a> {
    facts: &'a Map<String, Json>,
    /// Variables that the enclosing comprehensions of the predicate bind.
    bound: Vec<&'a str>,
}

impl<'a> NameChecker<'a> {
    fn visit(&mut self, expression: &'a IdedExpr) -> NameCheckResult {
        match &expression.expr {
            Expr::Ident(name) => self.variable(name)?,
            Expr::Select(select) => self.member(&select.operand, &select.field)?,
            Expr::Call(call) => self.call(call)?,
            Expr::Struct(made) => {
                return Err(format!("The type `{}` cannot be created.", made.type_name));
            }
            Expr::Comprehension(inner) => {
                self.visit(&inner.iter_range)?;
                self.visit(&inner.accu_init)?;
                let outside = self.bound.len();
                self.bound.extend([inner.iter_var.as_str(), inner.accu_var.as_str()]);
                self.bound.extend(inner.iter_var2.as_deref());
                for inside in [&inner.loop_cond, &inner.loop_step, &inner.result] {
                    self.visit(inside)?;
                }
                self.bound.truncate(outside);
            }
            Expr::Unspecified | Expr::List(_) | Expr::Map(_) | Expr::Literal(_) => {}
        }
        children(&expression.expr).try_for_each(|child| self.visit(child))
    }

    fn variable(&self, name: &str) -> NameCheckResult {
        let is_known =
            self.bound.contains(&name) || TYPES.contains(&name) || self.facts.contains_key(name);
        if is_known {
            return Ok(());
        }
        Err(format!("There is no `{name}`; an audit's facts are {}.", names(self.facts)))
    }

    /// Checks that a fact has this member, unless the members of the fact depend on the audit.
    fn member(&self, operand: &IdedExpr, field: &str) -> NameCheckResult {
        let Some((path, Json::Object(members))) = self.fact(operand) else { return Ok(()) };
        if members.is_empty() || members.contains_key(field) {
            return Ok(());
        }
        Err(format!("There is no `{path}.{field}`; `{path}` has {}.", names(members)))
    }

    /// Returns the fact that an expression selects, with its path; `None` for any other expression.
    fn fact(&self, expression: &IdedExpr) -> Option<(String, &'a Json)> {
        let (operand, field) = match &expression.expr {
            Expr::Ident(name) if !self.bound.contains(&name.as_str()) => {
                return Some((name.clone(), self.facts.get(name)?));
            }
            Expr::Select(select) => (&*select.operand, select.field.as_str()),
            Expr::Call(call) => indexed(call)?,
            _ => return None,
        };
        let (path, whole) = self.fact(operand)?;
        Some((format!("{path}.{field}"), whole.get(field)?))
    }

    /// Checks a call. Operators are calls of functions whose names do not begin with a letter.
    fn call(&self, call: &'a CallExpr) -> NameCheckResult {
        let name = call.func_name.as_str();
        let is_word = name.starts_with(|first: char| first.is_ascii_alphabetic());
        if is_word && !FUNCTIONS.contains(&name) {
            return Err(format!("The function `{name}` does not exist."));
        }
        if name == "matches"
            && let Some(pattern) = call.args.last().and_then(text)
        {
            patterns::compile(pattern)?;
        }
        indexed(call).map_or(Ok(()), |(operand, field)| self.member(operand, field))
    }
}

/// Returns operand and field of `operand['field']`; `None` for any other call.
fn indexed(call: &CallExpr) -> Option<(&IdedExpr, &str)> {
    match call.args.as_slice() {
        [operand, field] if call.func_name == operators::INDEX => Some((operand, text(field)?)),
        _ => None,
    }
}

/// Returns the text of a string literal; `None` for any other expression.
fn text(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

fn names(members: &Map<String, Json>) -> String {
    members.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}
