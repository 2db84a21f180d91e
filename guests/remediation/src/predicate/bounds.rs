//! How large a predicate may be. A guest's stack is small, and an expression's
//! tree is walked by recursion: what is nested deeper than this is refused
//! before anything recurses into it.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr};

/// Characters of the text.
const MAX_CHARS: usize = 1000;

/// Conditionals; the parser recurses for each.
const MAX_CONDITIONALS: usize = 8;

/// Parentheses, lists, calls and indices within one another.
pub(super) const MAX_NESTING: u16 = 16;

/// Operators, calls and selections within one another, those included into
/// which macros are expanded.
const MAX_DEPTH: usize = 32;

/// Nodes of the tree after macros are expanded.
pub(super) const MAX_NODES: usize = 2000;

/// Macros over the result of a macro, which is over that of another, and so on.
/// Each can double what the one before made.
const MAX_CHAINED: usize = 2;

/// What the text alone tells.
pub(super) fn before_parsing(source: &str) -> Result<(), String> {
    if source.chars().count() > MAX_CHARS {
        return Err(format!("The expression is longer than {MAX_CHARS} characters."));
    }
    if source.matches('?').count() > MAX_CONDITIONALS {
        return Err(format!("The expression has more than {MAX_CONDITIONALS} question marks."));
    }
    Ok(())
}

/// What only the tree tells: its depth, loops within loops and loops over what
/// loops make, which could take longer than anybody waits.
pub(super) fn after_parsing(expression: &IdedExpr) -> Result<(), String> {
    let mut waiting = vec![(expression, 1, 0, 0)];
    while let Some((expression, depth, loops, chained)) = waiting.pop() {
        if depth > MAX_DEPTH {
            return Err(format!("The expression is nested deeper than {MAX_DEPTH} levels."));
        }
        if loops > 1 {
            return Err("The expression has a macro such as `all` or `exists` within another's \
                        condition; `in` tells whether a list has an element."
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

/// The operands of an expression that is no comprehension.
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

/// Drops a tree of any depth without recursing into it.
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
            // The parser bounds how deep these are.
            Expr::Comprehension(_)
            | Expr::Map(_)
            | Expr::Struct(_)
            | Expr::Unspecified
            | Expr::Ident(_)
            | Expr::Literal(_) => {}
        }
    }
}
