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
