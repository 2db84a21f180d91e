//! The names in a predicate: a fact or function that does not exist would be
//! an error in every audit.

use cel::IdedExpr;
use cel::common::ast::{Expr, SelectExpr};

use super::bounds::children;

/// The variables, and the members each has.
const FACTS: [(&str, &[&str]); 4] = [
    ("audit", &["id", "repository_id", "branch_ref", "commit_sha"]),
    ("findings", &["total", "open", "new", "reopened", "gone", "by_severity", "by_rule"]),
    ("dependencies", &["total", "direct", "vulnerable", "advisories"]),
    ("ownership", &["rules", "paths", "unowned"]),
];

/// Names of types, which `type(x)` is compared with.
const TYPES: [&str; 10] =
    ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"];

/// The functions of the standard that facts can be given to.
pub(super) const FUNCTIONS: [&str; 12] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "type",
    "dyn",
];

/// Does the expression name only what there is?
pub(super) fn check(expression: &IdedExpr) -> Result<(), String> {
    visit(expression, &mut Vec::new())
}

/// Visits an expression; `bound` are the variables of the loops around it.
fn visit<'a>(expression: &'a IdedExpr, bound: &mut Vec<&'a str>) -> Result<(), String> {
    match &expression.expr {
        Expr::Ident(name) => variable(name, bound)?,
        Expr::Select(select) => member(select, bound)?,
        Expr::Call(call) => function(&call.func_name)?,
        Expr::Struct(made) => {
            return Err(format!("There is no type `{}` to make.", made.type_name));
        }
        Expr::Comprehension(inner) => {
            visit(&inner.iter_range, bound)?;
            visit(&inner.accu_init, bound)?;
            let outside = bound.len();
            bound.extend([inner.iter_var.as_str(), inner.accu_var.as_str()]);
            bound.extend(inner.iter_var2.as_deref());
            for inside in [&inner.loop_cond, &inner.loop_step, &inner.result] {
                visit(inside, bound)?;
            }
            bound.truncate(outside);
        }
        Expr::Unspecified | Expr::List(_) | Expr::Map(_) | Expr::Literal(_) => {}
    }
    children(&expression.expr).try_for_each(|child| visit(child, bound))
}

fn variable(name: &str, bound: &[&str]) -> Result<(), String> {
    let known = bound.contains(&name)
        || TYPES.contains(&name)
        || FACTS.iter().any(|(root, _)| *root == name);
    if known {
        return Ok(());
    }
    let roots: Vec<&str> = FACTS.iter().map(|(root, _)| *root).collect();
    Err(format!("There is no `{name}`; an audit's facts are {}.", roots.join(", ")))
}

fn member(select: &SelectExpr, bound: &[&str]) -> Result<(), String> {
    let Expr::Ident(root) = &select.operand.expr else { return Ok(()) };
    let facts = FACTS.iter().find(|(name, _)| name == root && !bound.contains(name));
    match facts {
        Some((_, members)) if !members.contains(&select.field.as_str()) => {
            let (field, members) = (&select.field, members.join(", "));
            Err(format!("There is no `{root}.{field}`; `{root}` has {members}."))
        }
        _ => Ok(()),
    }
}

/// Operators have names too, but none that begins with a letter.
fn function(name: &str) -> Result<(), String> {
    let is_word = name.starts_with(|first: char| first.is_ascii_alphabetic());
    if is_word && !FUNCTIONS.contains(&name) {
        return Err(format!("There is no function `{name}` here."));
    }
    Ok(())
}
