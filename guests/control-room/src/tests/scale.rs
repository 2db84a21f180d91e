//! Tests of imports with many findings: the size of each job step is limited for every file.

use super::*;

#[test]
fn a_large_file_is_imported_in_bounded_steps() {
    let workspace = Workspace::new();
    let names: Vec<String> = (0..450).map(|n| format!("rule{n}")).collect();
    let results: Vec<(&str, &str, &str)> =
        names.iter().map(|name| (name.as_str(), "a", name.as_str())).collect();
    let told = workspace.scan(&sarif("One", &results));
    assert_eq!((&told["counts"]["new"], &told["facts"]["open"]), (&json!(450), &json!(450)));
    let told = workspace.scan(&sarif("One", &results[..7]));
    assert_eq!((&told["counts"]["seen"], &told["counts"]["gone"]), (&json!(7), &json!(443)));
    assert_eq!(told["facts"]["open"], 7);
    let lists = workspace.host.events().into_iter().filter(|event| event.name == "finding.created");
    let lengths: Vec<usize> =
        lists.map(|event| event.data["findings"].as_array().expect("a list").len()).collect();
    assert_eq!(lengths, [200, 200, 50]);
}

#[test]
fn all_duplicates_of_a_verified_finding_are_reopened() {
    let workspace = Workspace::new();
    let names: Vec<String> = (0..=205).map(|n| format!("rule{n}")).collect();
    let results: Vec<(&str, &str, &str)> =
        names.iter().map(|name| (name.as_str(), "a", name.as_str())).collect();
    workspace.scan(&sarif("One", &results));
    let original = workspace.finding("rule0")["id"].clone();
    for name in &names[1..] {
        let body = json!({ "to_state": "duplicate", "duplicate_of": original });
        let request = workspace.transition(&workspace.finding(name), body).if_match(1);
        workspace.host.call(request).expect("allowed");
    }
    let told = workspace.scan(&sarif("One", &results[1..]));
    assert_eq!((&told["counts"]["gone"], &told["counts"]["reopened"]), (&json!(1), &json!(205)));
}
