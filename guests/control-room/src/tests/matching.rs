//! Tests of match suggestions across tools and paths, and of users' decisions.

use super::*;

const MESSAGE: &str = "user input flows into the sql query here";

fn suggestions(workspace: &Workspace) -> Vec<Value> {
    workspace.list(Request::to("list_match_suggestions").with("limit", 100))
}

fn decide(suggestion: &Value, body: Value) -> Request {
    let id = suggestion["id"].clone();
    Request::to("decide_match_suggestion").with("suggestion_id", id).json(body)
}

#[test]
fn likeness_of_four_fifths_in_one_family_is_suggested_and_less_is_not() {
    let workspace = Workspace::new();
    workspace.scan(&sarif("One", &[("js/sql-injection", "a.js", "a b c d")]));
    workspace.scan(&sarif(
        "Two",
        &[
            ("lang.security.sql_injection", "a.js", "A, b; c d e"),
            ("other-rule", "a.js", "a b c d"),
        ],
    ));
    workspace.scan(&sarif("Three", &[("sql-injection", "a.js", "a b x y")]));
    let made = suggestions(&workspace);
    let [one] = &made[..] else { panic!("{made:#?}") };
    assert_eq!((&one["similarity"], &one["state"]), (&json!("0.8000"), &json!("pending")));
    assert_eq!(one["left_finding_id"], workspace.finding("js/sql-injection")["id"]);
    assert_eq!(one["right_finding_id"], workspace.finding("lang.security.sql_injection")["id"]);
    assert!(one["rationale"].as_str().is_some_and(|text| text.contains("4 of 5 words")));
    assert_eq!(one["algorithm_version"], "match-v1");
    assert_eq!(one["method"], "token_jaccard");
    assert_eq!(workspace.finding("lang.security.sql_injection")["state"], "new", "not merged");
}

#[test]
fn the_same_tool_in_the_same_path_is_not_suggested() {
    let workspace = Workspace::new();
    workspace.scan(&sarif("One", &[("R", "a", MESSAGE), ("R", "a", MESSAGE), ("R", "b", MESSAGE)]));
    let pairs = suggestions(&workspace);
    assert_eq!(pairs.len(), 2, "each of the two in a with the one in b: {pairs:#?}");
    workspace.scan(&sarif("One", &[("R", "a", MESSAGE), ("R", "a", MESSAGE), ("R", "b", MESSAGE)]));
    assert_eq!(suggestions(&workspace).len(), 2, "suggested once");
}

#[test]
fn an_accepted_suggestion_merges_and_a_decision_stands() {
    let workspace = Workspace::new();
    workspace.scan(&sarif("One", &[("sql-injection", "a.js", MESSAGE)]));
    workspace.scan(&sarif("Two", &[("x/sql-injection", "a.js", MESSAGE)]));
    let one = suggestions(&workspace).remove(0);
    let stale = decide(&one, json!({ "decision": "accepted" })).if_match(7);
    workspace.host.call(stale).expect_err("stale");
    let accept = || decide(&one, json!({ "decision": "accepted", "reason": "same line" }));
    let answer = workspace.host.call(accept().if_match(1)).expect("accepted");
    assert_eq!((&answer.body["state"], answer.version), (&json!("accepted"), Some(2)));
    assert_ne!(answer.body["decided_by"], Value::Null);
    let again = workspace.host.call(accept()).expect_err("decided");
    assert_eq!(again.code.as_deref(), Some("suggestion_decided"));

    let (left, right) = (workspace.finding("sql-injection"), workspace.finding("x/sql-injection"));
    assert_eq!((&right["state"], &right["duplicate_of"]), (&json!("duplicate"), &left["id"]));
    assert_ne!(left["match_group_id"], Value::Null);
    assert_eq!(left["match_group_id"], right["match_group_id"]);
    let tools: Vec<&Value> =
        left["source_tools"].as_array().expect("tools").iter().map(|one| &one["tool"]).collect();
    assert_eq!(tools, ["One", "Two"]);
    let merged = workspace.transition_to("duplicate");
    assert_eq!(merged["metadata_json"]["duplicate_of"], left["id"]);
    assert_eq!(merged["reason"], "same line");
    assert_ne!(merged["supersedes_transition_id"], Value::Null);
    let room = workspace.rebuild();
    assert_eq!(room["outcomes"]["duplicates_collapsed"], 1);
    assert_eq!(room["match_suggestions"][0]["state"], "accepted");

    // Only open findings are suggested. A finding that is no longer open when the suggestion is
    // accepted joins the group, but is not marked as a duplicate.
    workspace.scan(&sarif("Three", &[("y/sql-injection", "a.js", MESSAGE)]));
    let next = suggestions(&workspace).remove(0);
    assert_eq!(next["left_finding_id"], left["id"]);
    workspace.scan(&sarif("Three", &[]));
    workspace.host.call(decide(&next, json!({ "decision": "accepted" }))).expect("accepted");
    let gone = workspace.finding("y/sql-injection");
    assert_eq!(gone["state"], "verified");
    assert_eq!(gone["match_group_id"], left["match_group_id"]);

    workspace.scan(&sarif("Four", &[("z/sql-injection", "a.js", MESSAGE)]));
    let next = suggestions(&workspace).remove(0);
    let rejected = workspace.host.call(decide(&next, json!({ "decision": "rejected" })));
    assert_eq!(rejected.expect("rejected").body["state"], "rejected");
}

#[test]
fn groups_are_joined() {
    let workspace = Workspace::new();
    for tool in ["One", "Two", "Three", "Four"] {
        workspace.scan(&sarif(tool, &[("sql-injection", "a.js", MESSAGE)]));
    }
    let finding = |tool: &str| -> Value {
        let some = Request::to("list_findings").with("limit", 50).with("tool", tool);
        workspace.list(some).remove(0)
    };
    let accept = |left: &str, right: &str| {
        let (left, right) = (finding(left)["id"].clone(), finding(right)["id"].clone());
        let all = suggestions(&workspace);
        let one = all
            .iter()
            .find(|one| one["left_finding_id"] == left && one["right_finding_id"] == right);
        let body = json!({ "decision": "accepted" });
        workspace.host.call(decide(one.expect("suggested"), body)).expect("accepted");
    };
    accept("Three", "Four");
    accept("One", "Two");
    assert_ne!(finding("One")["match_group_id"], finding("Three")["match_group_id"]);
    accept("One", "Three");
    let group = finding("One")["match_group_id"].clone();
    for tool in ["Two", "Three", "Four"] {
        assert_eq!(finding(tool)["match_group_id"], group, "{tool}");
    }
}

#[test]
fn suggestions_are_few_however_many_are_alike() {
    let workspace = Workspace::new();
    let paths: Vec<String> = (0..120).map(|n| format!("src/{n}.rs")).collect();
    let results: Vec<(&str, &str, &str)> =
        paths.iter().map(|path| ("R", path.as_str(), MESSAGE)).collect();
    let told = workspace.scan(&sarif("One", &results));
    assert_eq!(told["counts"]["match_suggestions"], 20);
    let made = suggestions(&workspace);
    for finding in made.iter().map(|one| &one["right_finding_id"]) {
        assert!(made.iter().filter(|one| one["right_finding_id"] == *finding).count() <= 3);
    }
}
