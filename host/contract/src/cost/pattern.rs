//! Size of compiled regular expressions.

use regex_automata::nfa::thompson::{Compiler, Config};
use serde_json::Value as Json;

/// Returns every regular expression of a schema.
pub(super) fn all(schema: &Json) -> Vec<&str> {
    let mut found = Vec::new();
    let mut waiting = vec![schema];
    while let Some(value) = waiting.pop() {
        match value {
            Json::Object(members) => {
                found.extend(members.get("pattern").and_then(Json::as_str));
                let by_name = members.get("patternProperties").and_then(Json::as_object);
                found.extend(by_name.into_iter().flatten().map(|(name, _)| name.as_str()));
                waiting.extend(members.values());
            }
            Json::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    found
}

/// Returns the size of a pattern's compiled program in bytes; `None` if it
/// exceeds `most`. Returns 0 for an invalid pattern, which compiling the schema
/// reports.
pub(super) fn program_bytes(pattern: &str, most: u32) -> Option<u64> {
    let Ok(translated) = jsonschema_regex::to_rust_regex(pattern) else { return Some(0) };
    let config = Config::new().nfa_size_limit(Some(most as usize));
    match Compiler::new().configure(config).build(&translated) {
        Ok(program) => Some(program.memory_usage() as u64),
        Err(error) if error.size_limit().is_some() => None,
        Err(_) => Some(0),
    }
}
