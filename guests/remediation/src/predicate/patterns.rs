//! Regular expressions in predicates. They are matched in linear time and have
//! a small bound: their author is not the one whose audit waits for them.

use std::sync::Arc;

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

/// The function `matches`: is there a match anywhere in the text?
#[expect(clippy::needless_pass_by_value, reason = "the interpreter gives its arguments away")]
pub(super) fn matches(
    This(text): This<Arc<String>>,
    pattern: Arc<String>,
) -> Result<Value, ExecutionError> {
    match compile(&pattern) {
        Ok(pattern) => Ok(Value::Bool(pattern.is_match(&text))),
        Err(message) => Err(ExecutionError::function_error("matches", message)),
    }
}
