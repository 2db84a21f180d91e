//! Regular expressions in predicates. They are matched in linear time and have
//! a small bound: their author is not the one whose audit waits for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cel::extractors::This;
use cel::{ExecutionError, Value};
use regex_lite::{Regex, RegexBuilder};

/// What one pattern may take compiled; a repetition such as `a{1000}` counts
/// as often as it repeats.
const MAX_BYTES: usize = 64 * 1024;

/// Groups within one another; a guest's stack is small.
const MAX_NESTING: u32 = 16;

pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .size_limit(MAX_BYTES)
        .nest_limit(MAX_NESTING)
        .build()
        .map_err(|error| format!("`{pattern}` is no regular expression that is taken: {error}."))
}

/// Steps that all matches of an evaluation may take: a character of a text
/// against a place of a pattern each.
const MAX_STEPS: u64 = 250_000_000;

/// The most places that a pattern of [`MAX_BYTES`] has.
const MAX_PLACES: u64 = 4_096;

/// The function `matches` of one evaluation: is there a match anywhere in the
/// text?
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

/// About as many as the pattern has when its repetitions are written out.
fn places(pattern: &str) -> u64 {
    let braces = pattern.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let most = braces.filter_map(|(times, _)| times.rsplit(',').find_map(|n| n.parse().ok()));
    let repeated = most.fold(1_u64, |product, times: u64| product.saturating_mul(times.max(1)));
    (pattern.len() as u64).saturating_mul(repeated).min(MAX_PLACES)
}
