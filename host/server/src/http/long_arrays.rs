//! Finds arrays of a body that have more items than `maxItems` allows. They are refused before the
//! schema is validated, which would collect the errors of all their items in memory.

use assurance_core::domain::area::Violation;
use serde_json::Value as Json;

/// Maximum number of schemas from the root to a value; it ends cycles of references.
const MAX_DEPTH: usize = 64;
/// Maximum number of pairs of a schema and a value that are looked at. A body has fewer; an area's
/// schema whose references branch may have any number.
const MAX_VISITS: usize = 1_000_000;

/// Returns a violation for each array that is too long, by the schema's `properties`, `items`,
/// `allOf` and `$ref`. Items of such an array are not looked at.
pub(super) fn find(schema: &Json, body: &Json) -> Vec<Violation> {
    let mut search = Search { root: schema, found: Vec::new(), visits: 0 };
    search.visit(schema, body, "", 0);
    search.found
}

struct Search<'s> {
    root: &'s Json,
    found: Vec<Violation>,
    visits: usize,
}

impl<'s> Search<'s> {
    fn visit(&mut self, schema: &'s Json, value: &Json, pointer: &str, depth: usize) {
        let is_nested = matches!(value, Json::Array(_) | Json::Object(_));
        self.visits += 1;
        if !is_nested || !schema.is_object() || depth > MAX_DEPTH || self.visits > MAX_VISITS {
            return;
        }
        let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
        let referenced = target.and_then(|target| self.root.pointer(target));
        let parts = schema["allOf"].as_array().into_iter().flatten().chain(referenced);
        parts.for_each(|part| self.visit(part, value, pointer, depth + 1));
        match value {
            Json::Array(items) => self.visit_items(schema, items, pointer, depth),
            Json::Object(members) => {
                for (name, member) in members {
                    let at = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                    self.visit(&schema["properties"][name.as_str()], member, &at, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn visit_items(&mut self, schema: &'s Json, items: &[Json], pointer: &str, depth: usize) {
        match schema["maxItems"].as_u64() {
            Some(most) if items.len() as u64 > most => {
                let plural = if most == 1 { "" } else { "s" };
                let message = format!("has more than {most} item{plural}");
                self.found.push(Violation { pointer: pointer.to_owned(), message });
            }
            _ => {
                for (index, item) in items.iter().enumerate() {
                    self.visit(&schema["items"], item, &format!("{pointer}/{index}"), depth + 1);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arrays_that_are_too_long_are_found_wherever_they_are() {
        let schema = json!({
            "$defs": {"Step": {"allOf": [{"properties": {"a/b": {"maxItems": 1}}}]}},
            "properties": {
                "steps": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/Step"}},
                "loop": {"$ref": "#/properties/loop"},
            },
        });
        let found = |body: Json| {
            let found = find(&schema, &body).into_iter();
            found.map(|one| format!("{} {}", one.pointer, one.message)).collect::<Vec<_>>()
        };
        let long = json!({ "a/b": [1, 2] });
        assert_eq!(found(json!({ "steps": [long, long, long] })), ["/steps has more than 2 items"]);
        let nested = json!({ "steps": [{ "a/b": [1] }, long], "loop": [], "other": [1, 2, 3] });
        assert_eq!(found(nested), ["/steps/1/a~1b has more than 1 item"]);
        assert!(found(json!([])).is_empty() && found(json!({ "steps": {} })).is_empty());
    }

    #[test]
    fn references_that_branch_end() {
        let schema = json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }], "maxItems": 1 });
        assert_eq!(find(&schema, &json!([])), []);
    }
}
