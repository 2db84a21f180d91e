//! Size of compiled regular expressions.

use regex_automata::nfa::thompson::{Compiler, Config};
use serde_json::Value as Json;

use crate::walk::objects;

/// Returns every regular expression of a schema.
pub(super) fn all(schema: &Json) -> impl Iterator<Item = &str> {
    objects(schema).flat_map(|object| {
        let by_name = object["patternProperties"].as_object().into_iter().flatten();
        let names = by_name.map(|(name, _)| name.as_str());
        object["pattern"].as_str().into_iter().chain(names)
    })
}

/// Returns the size of a regular expression's compiled program in bytes; `None`
/// if it exceeds `most`. Returns 0 for an invalid expression, which compiling
/// the schema reports.
pub(super) fn program_bytes(pattern: &str, most: u32) -> Option<u64> {
    let Ok(translated) = jsonschema_regex::to_rust_regex(pattern) else { return Some(0) };
    let config = Config::new().nfa_size_limit(Some(most as usize));
    match Compiler::new().configure(config).build(&translated) {
        Ok(program) => Some(program.memory_usage() as u64),
        Err(error) if error.size_limit().is_some() => None,
        Err(_) => Some(0),
    }
}
