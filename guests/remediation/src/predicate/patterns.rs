//! Regular expressions in predicates. Matches take linear time and have small limits, because a
//! slow match delays the audits of other users.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cel::extractors::This;
use cel::{ExecutionError, Value};
use regex_lite::{Regex, RegexBuilder};

/// Maximum size of a compiled regular expression, in bytes. A repetition such as `a{1000}` takes
/// the memory of 1000 copies.
const MAX_BYTES: usize = 64 * 1024;

/// Maximum nesting of groups in a regular expression; a guest's stack is small.
const MAX_NESTING: u32 = 16;

pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .size_limit(MAX_BYTES)
        .nest_limit(MAX_NESTING)
        .build()
        .map_err(|error| format!("`{pattern}` is not a supported regular expression: {error}."))
}

/// Maximum number of steps of all regular-expression matches in one evaluation. A step compares one
/// character of a text with one position of a pattern.
const MAX_STEPS: u64 = 250_000_000;

/// Maximum number of positions that a regular expression within [`MAX_BYTES`] can have.
const MAX_PLACES: u64 = 4_096;

/// Returns the CEL function `matches` for one evaluation. It searches for a match anywhere in the
/// text.
pub(super) fn matcher() -> impl Fn(This<Arc<String>>, Arc<String>) -> Result<Value, ExecutionError>
{
    let state = Mutex::new((MAX_STEPS, HashMap::new()));
    move |This(text), pattern| {
        let failed = |message| ExecutionError::function_error("matches", message);
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, compiled) = &mut *state;
        let steps = (text.len() as u64 + 1).saturating_mul(places(&pattern));
        *left = left.checked_sub(steps).ok_or_else(|| {
            failed(format!(
                "the matches of the expression cost more than {MAX_STEPS} steps; shorten the \
                 patterns or match fewer texts"
            ))
        })?;
        let pattern = match compiled.get(&pattern) {
            Some(known) => known,
            None => {
                let regex = compile(&pattern).map_err(failed)?;
                compiled.entry(pattern).or_insert(regex)
            }
        };
        Ok(Value::Bool(pattern.is_match(&text)))
    }
}

/// Returns the approximate number of positions of a regular expression after its repetitions are
/// expanded.
fn places(pattern: &str) -> u64 {
    let braces = pattern.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let most = braces.filter_map(|(times, _)| times.rsplit(',').find_map(|n| n.parse().ok()));
    let repeated = most.fold(1_u64, |product, times: u64| product.saturating_mul(times.max(1)));
    (pattern.len() as u64).saturating_mul(repeated).min(MAX_PLACES)
}
