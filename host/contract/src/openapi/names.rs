//! Names of schema components in `CamelCase`, which client generators use as type names.

use serde_json::Value as Json;

/// Converts a name to `CamelCase`: `support_case.created` becomes `SupportCaseCreated`.
pub(super) fn camel(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.map(capitalized).collect()
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Returns a name for one branch of a union: from the constant that distinguishes the branch, else
/// from its only member, else from its position.
pub(super) fn variant_name(union: &str, position: &str, branch: &Json) -> String {
    let members = branch["properties"].as_object();
    let members = || members.into_iter().flatten();
    let constant = members().find_map(|(_, member)| member["const"].as_str());
    let only = members().next().filter(|_| members().count() == 1);
    match (constant, only) {
        (Some(constant), _) => format!("{union}{}", camel(constant)),
        (None, Some((member, _))) => format!("{union}{}", camel(member)),
        (None, None) => format!("{union}Variant{position}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_camel_case() {
        assert_eq!(camel("support_case.created"), "SupportCaseCreated");
        assert_eq!(camel("RecurringFinding"), "RecurringFinding");
        assert_eq!(camel("Array_of_Message"), "ArrayOfMessage");
    }

    #[test]
    fn a_branch_is_named_by_what_tells_it_from_the_others() {
        let tagged = json!({"properties": {"n": {}, "kind": {"const": "in_place"}}});
        assert_eq!(variant_name("Change", "1", &tagged), "ChangeInPlace");
        assert_eq!(variant_name("Change", "1", &json!({"properties": {"id": {}}})), "ChangeId");
        assert_eq!(variant_name("Change", "1", &json!({"type": "null"})), "ChangeVariant1");
    }
}
