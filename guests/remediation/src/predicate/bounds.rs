//! Size limits of predicates. A guest's stack is small and expressions are walked recursively, so
//! deeper expressions are refused before any recursion.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr};

/// Maximum length of a predicate, in characters.
const MAX_CHARS: usize = 1000;

/// Maximum number of conditional operators (`?:`); the parser recurses for each.
const MAX_CONDITIONALS: usize = 8;

/// Maximum nesting of parentheses, lists, calls and indices in a predicate.
pub(super) const MAX_NESTING: u16 = 16;

/// Maximum depth of the expression tree: operators, calls and selections, including those from
/// expanded macros.
const MAX_DEPTH: usize = 32;

/// Maximum number of nodes of the expression tree after macros are expanded.
pub(super) const MAX_NODES: usize = 2000;

/// Maximum number of macros that are applied to the result of another macro, for example `map`
/// after `filter`. Each can double the size of its input.
const MAX_CHAINED: usize = 2;

/// Checks those limits of a predicate that can be checked in its text. An error is the description
/// of the violated limit.
pub(super) fn before_parsing(source: &str) -> Result<(), String> {
    if source.chars().count() > MAX_CHARS {
        return Err(format!("The expression is longer than {MAX_CHARS} characters."));
    }
    if source.matches('?').count() > MAX_CONDITIONALS {
        return Err(format!("The expression has more than {MAX_CONDITIONALS} question marks."));
    }
    Ok(())
}

/// Checks those limits of a predicate that need the expression tree: its depth, nested loops, and
/// loops over results of loops, which could run too long.
pub(super) fn after_parsing(expression: &IdedExpr) -> Result<(), String> {
    let mut waiting = vec![(expression, 1, 0, 0)];
    while let Some((expression, depth, loops, chained)) = waiting.pop() {
        if depth > MAX_DEPTH {
            return Err(format!("The expression is nested deeper than {MAX_DEPTH} levels."));
        }
        if loops > 1 {
            return Err("The expression has a macro such as `all` or `exists` within another's \
                        condition; `in` checks whether a list has an element."
                .to_owned());
        }
        if let Expr::Comprehension(inner) = &expression.expr {
            if chained == MAX_CHAINED {
                return Err(format!(
                    "The expression costs too much: more than {MAX_CHAINED} macros such as `map` \
                     are applied one to the result of the other; join their conditions."
                ));
            }
            waiting.extend([
                (&inner.iter_range, depth + 1, loops, chained + 1),
                (&inner.accu_init, depth + 1, loops, chained),
                (&inner.loop_cond, depth + 1, loops + 1, chained),
                (&inner.loop_step, depth + 1, loops + 1, chained),
                (&inner.result, depth + 1, loops, chained),
            ]);
        } else {
            let children = children(&expression.expr);
            waiting.extend(children.map(|child| (child, depth + 1, loops, chained)));
        }
    }
    Ok(())
}

/// Returns the direct operands of an expression; none for a comprehension.
pub(super) fn children(expression: &Expr) -> Box<dyn Iterator<Item = &IdedExpr> + '_> {
    match expression {
        Expr::Call(call) => Box::new(call.target.as_deref().into_iter().chain(&call.args)),
        Expr::List(list) => Box::new(list.elements.iter()),
        Expr::Map(map) => Box::new(map.entries.iter().flat_map(|entry| entries(&entry.expr))),
        Expr::Struct(made) => Box::new(made.entries.iter().flat_map(|entry| entries(&entry.expr))),
        Expr::Select(select) => Box::new(std::iter::once(&*select.operand)),
        Expr::Unspecified | Expr::Comprehension(_) | Expr::Ident(_) | Expr::Literal(_) => {
            Box::new(std::iter::empty())
        }
    }
}

fn entries(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}

/// Drops an expression tree of any depth without recursion.
pub(super) fn dismantle(expression: IdedExpr) {
    let mut waiting = vec![expression];
    while let Some(expression) = waiting.pop() {
        match expression.expr {
            Expr::Call(call) => {
                waiting.extend(call.target.map(|target| *target));
                waiting.extend(call.args);
            }
            Expr::Select(select) => waiting.push(*select.operand),
            Expr::List(list) => waiting.extend(list.elements),
            // The parser limits the depth of these.
            Expr::Comprehension(_)
            | Expr::Map(_)
            | Expr::Struct(_)
            | Expr::Unspecified
            | Expr::Ident(_)
            | Expr::Literal(_) => {}
        }
    }
}
