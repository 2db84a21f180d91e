//! Tests of SARIF runs without a category: the artifact stream decides which run replaces another,
//! and only a run that scanned a finding's files can verify that the finding is fixed.

use super::*;

const SQLI: (&str, &str, &str) = ("sqli", "front/login.js", "a query depends on input");
const XSS: (&str, &str, &str) = ("xss", "back/page.js", "input reaches the page");

/// Builds the SARIF property `run.artifacts`: the files that the run scanned.
fn artifacts(paths: &[&str]) -> Value {
    let artifact = |path: &&str| json!({ "location": { "uri": path } });
    json!({ "artifacts": paths.iter().map(artifact).collect::<Vec<_>>() })
}

impl Workspace {
    fn state(&self, rule: &str) -> Value {
        self.finding(rule)["state"].clone()
    }
}

fn count(told: &Value, name: &str) -> i64 {
    told["counts"][name].as_i64().expect("a count")
}

fn warnings(told: &Value) -> Vec<String> {
    serde_json::from_value(told["warnings"].clone()).expect("texts")
}

fn warns(told: &Value, parts: &[&str]) -> bool {
    warnings(told).iter().any(|warning| parts.iter().all(|part| warning.contains(part)))
}

#[test]
fn two_files_of_one_tool_are_both_imported() {
    let workspace = Workspace::new();
    let front = workspace.upload_as("front.sarif", &sarif("ESLint", &[SQLI]));
    let back = workspace.upload_as("back.sarif", &sarif("ESLint", &[XSS]));
    let told = workspace.audit(&[back, front]);
    assert_eq!((count(&told, "new"), count(&told, "superseded")), (2, 0));
    assert_eq!(told["warnings"], json!([]));
}

#[test]
fn a_file_that_is_missing_verifies_nothing_and_an_empty_one_verifies_its_own() {
    let workspace = Workspace::new();
    let front = workspace.upload_as("front.sarif", &sarif("ESLint", &[SQLI]));
    let back = workspace.upload_as("back.sarif", &sarif("ESLint", &[XSS]));
    workspace.audit(&[back.clone(), front]);

    let told = workspace.audit(std::slice::from_ref(&back));
    assert_eq!((count(&told, "gone"), workspace.state("sqli")), (0, json!("new")));
    assert!(warns(&told, &["ESLint", "file:front.sarif", "1 finding"]), "{told:#}");

    let front = workspace.upload_as("front.sarif", &sarif("ESLint", &[]));
    let told = workspace.audit(&[front, back]);
    assert_eq!(count(&told, "gone"), 1);
    assert_eq!(workspace.state("sqli"), "verified");
    assert_eq!(workspace.state("xss"), "new");
    assert_eq!(told["warnings"], json!([]));
}

#[test]
fn paths_are_part_of_a_file_s_name() {
    let workspace = Workspace::new();
    let front = workspace.upload_as("front/eslint.sarif", &sarif("ESLint", &[SQLI]));
    let back = workspace.upload_as("back/eslint.sarif", &sarif("ESLint", &[XSS]));
    let told = workspace.audit(&[back, front]);
    assert_eq!((count(&told, "new"), count(&told, "superseded")), (2, 0));
}

#[test]
fn a_file_of_the_same_name_is_set_aside_by_a_newer_one_and_reported() {
    let workspace = Workspace::new();
    let old = workspace.upload_as("eslint.sarif", &sarif("ESLint", &[SQLI]));
    let new = workspace.upload_as("eslint.sarif", &sarif("ESLint", &[XSS]));
    let told = workspace.audit(&[new.clone(), old.clone()]);
    assert_eq!((count(&told, "new"), count(&told, "superseded")), (1, 1));
    let id = |upload: &Value| upload["upload_id"].as_str().expect("an id").to_owned();
    let why = ["Set aside", "newer run of ESLint without category", &id(&old), &id(&new)];
    assert!(warns(&told, &why), "{told:#}");
    let again = workspace.audit(&[new.clone(), old.clone()]);
    assert!(warns(&again, &why), "still nothing has looked at it: {again:#}");

    // A file that an earlier audit imported is superseded without another warning.
    let newest = workspace.upload_as("eslint.sarif", &sarif("ESLint", &[XSS]));
    let told = workspace.audit(&[newest, new, old]);
    assert_eq!((count(&told, "superseded"), &told["warnings"]), (2, &json!([])));
}

#[test]
fn files_of_one_category_set_each_other_aside_and_are_reported() {
    let workspace = Workspace::new();
    let category = json!({ "automationDetails": { "id": "lint/1" } });
    let front =
        workspace.upload_as("front.sarif", &sarif_with("ESLint", &[SQLI], category.clone()));
    let back = workspace.upload_as("back.sarif", &sarif_with("ESLint", &[XSS], category));
    let told = workspace.audit(&[back, front]);
    assert_eq!((count(&told, "new"), count(&told, "superseded")), (1, 1));
    assert!(warns(&told, &["Set aside", "back.sarif", "ESLint of category lint", "front.sarif"]));
}

#[test]
fn a_renamed_file_takes_for_gone_what_its_run_looked_at() {
    let workspace = Workspace::new();
    let other = ("no-eval", "front/other.js", "eval");
    let deep = ("deep", "front/deep.js", "deep");
    workspace
        .audit(&[workspace.upload_as("eslint.sarif", &sarif("ESLint", &[SQLI, XSS, other, deep]))]);
    // The run lists one file and reports a result in another.
    let content = sarif_with(
        "ESLint",
        &[("no-var", "front/other.js", "var")],
        artifacts(&["./front/login.js"]),
    );
    let told = workspace.audit(&[workspace.upload_as("lint.sarif", &content)]);
    assert_eq!(count(&told, "gone"), 2);
    assert_eq!(workspace.state("sqli"), "verified");
    assert_eq!(workspace.state("no-eval"), "verified");
    assert_eq!(workspace.state("xss"), "new");
    assert_eq!(workspace.state("deep"), "new");
    assert!(warns(&told, &["file:eslint.sarif", "2 findings"]), "{told:#}");
}

#[test]
fn artifacts_without_results_cover_their_files() {
    let workspace = Workspace::new();
    workspace.audit(&[workspace.upload_as("a.sarif", &sarif("ESLint", &[SQLI, XSS]))]);
    let looked = sarif_with("ESLint", &[], artifacts(&["front/login.js", "front/app.js"]));
    let told = workspace.audit(&[workspace.upload_as("b.sarif", &looked)]);
    assert_eq!(count(&told, "gone"), 1);
    assert_eq!(workspace.state("sqli"), "verified");
    assert_eq!(workspace.state("xss"), "new");
}

#[test]
fn a_run_that_lists_its_rules_looked_for_those_that_are_enabled() {
    let workspace = Workspace::new();
    workspace.audit(&[workspace.upload_as("security.sarif", &sarif("Semgrep", &[SQLI, XSS]))]);
    let mut said = artifacts(&["front/login.js", "back/page.js"]);
    let disabled = |id: &str| json!({ "id": id, "defaultConfiguration": { "enabled": false } });
    let rules = [json!({ "id": "style" }), disabled("sqli"), disabled("xss")];
    said["tool"] = json!({ "driver": { "name": "Semgrep", "rules": rules } });
    said["invocations"] = json!([{ "executionSuccessful": true, "ruleConfigurationOverrides": [
        { "descriptor": { "id": "xss" }, "configuration": { "enabled": true } },
    ] }]);
    let told =
        workspace.audit(&[workspace.upload_as("style.sarif", &sarif_with("Semgrep", &[], said))]);
    assert_eq!(count(&told, "gone"), 1);
    assert_eq!(workspace.state("sqli"), "new", "nothing looked for it");
    assert_eq!(workspace.state("xss"), "verified");
}

#[test]
fn a_stream_that_ran_without_a_finding_while_another_showed_it_says_nothing_of_it() {
    let workspace = Workspace::new();
    // Each package was scanned in its own folder, so that both runs report the same relative path.
    let front = ("sqli", "src/index.js", "a query depends on input");
    let back = ("xss", "src/index.js", "input reaches the page");
    let show = |name: &str, results: &[(&str, &str, &str)]| {
        workspace.upload_as(name, &sarif("Semgrep", results))
    };
    workspace.audit(&[show("back.sarif", &[back]), show("front.sarif", &[front])]);
    for _ in 0..2 {
        let told = workspace.audit(&[show("back.sarif", &[back])]);
        assert_eq!((count(&told, "gone"), workspace.state("sqli")), (0, json!("new")));
        assert!(warns(&told, &["file:front.sarif", "1 finding"]), "{told:#}");
    }
    // A new stream may be a renamed stream, so its run can verify findings of other streams.
    let told = workspace.audit(&[show("app.sarif", &[("no-eval", "src/index.js", "eval")])]);
    assert_eq!(count(&told, "gone"), 2);
    assert_eq!(workspace.state("sqli"), "verified");
}

#[test]
fn failed_and_foreign_runs_cover_nothing() {
    let workspace = Workspace::new();
    workspace.audit(&[workspace.upload_as("a.sarif", &sarif("ESLint", &[SQLI]))]);
    let mut failed = artifacts(&["front/login.js"]);
    failed["invocations"] = json!([{ "executionSuccessful": false }]);
    let failed = sarif_with("ESLint", &[], failed);
    let looked = |tool: &str, more: Value| {
        let mut said = artifacts(&["front/login.js"]);
        for (name, value) in more.as_object().expect("an object") {
            said[name] = value.clone();
        }
        sarif_with(tool, &[], said)
    };
    let gone = |filename: &str, content: &[u8], branch: Option<&str>| {
        let upload = workspace.upload_as(filename, content);
        let audit = json!({ "inputs": [upload], "branch_ref": branch });
        count(&workspace.audit_of(audit), "gone")
    };
    assert_eq!(gone("a.sarif", &failed, None), 0, "failed, same stream");
    assert_eq!(gone("b.sarif", &failed, None), 0, "failed, another stream");
    assert_eq!(gone("b.sarif", &looked("JSHint", json!({})), None), 0, "another tool");
    let category = json!({ "automationDetails": { "id": "lint/1" } });
    assert_eq!(gone("b.sarif", &looked("ESLint", category), None), 0, "another analysis");
    let next = Some("refs/heads/next");
    assert_eq!(gone("b.sarif", &looked("ESLint", json!({})), next), 0, "another branch");
    assert_eq!(gone("a.sarif", &sarif("ESLint", &[]), next), 0, "another branch, same stream");
    assert_eq!(workspace.state("sqli"), "new");
    assert_eq!(gone("b.sarif", &looked("ESLint", json!({})), None), 1);
}

#[test]
fn a_file_with_a_failed_run_speaks_only_for_what_its_good_runs_covered() {
    let workspace = Workspace::new();
    let other = ("no-eval", "front/other.js", "eval");
    let run = |results: &[(&str, &str, &str)], said: Value| {
        sarif_log("ESLint", results, said)["runs"][0].clone()
    };
    let log = |runs: &[Value]| json!({ "version": "2.1.0", "runs": runs }).to_string();
    let first = log(&[run(&[SQLI, other], json!({})), run(&[XSS], json!({}))]);
    let told = workspace.audit(&[workspace.upload_as("all.sarif", first.as_bytes())]);
    assert_eq!(count(&told, "new"), 3, "two runs of a tool in one file are one analysis");

    let failed = json!({ "invocations": [{ "executionSuccessful": false }] });
    let good = run(&[], artifacts(&["front/login.js"]));
    let second = log(&[good.clone(), run(&[], failed)]);
    let told = workspace.audit(&[workspace.upload_as("all.sarif", second.as_bytes())]);
    assert_eq!(count(&told, "gone"), 1);
    assert_eq!(workspace.state("sqli"), "verified");
    assert_eq!(workspace.state("xss"), "new");

    let refused = json!({ "tool": { "driver": { "name": "ESLint" } }, "results": [42] });
    let third = log(&[refused, good.clone()]);
    let told = workspace.audit(&[workspace.upload_as("all.sarif", third.as_bytes())]);
    assert_eq!(count(&told, "gone"), 0, "a refused run may have shown it: {told:#}");

    let told =
        workspace.audit(&[workspace.upload_as("all.sarif", log(&[good.clone(), good]).as_bytes())]);
    assert_eq!(count(&told, "gone"), 2);
}

#[test]
fn two_tools_in_one_file_are_two_analyses() {
    let workspace = Workspace::new();
    let run = |tool: &str, results: &[(&str, &str, &str)]| {
        sarif_log(tool, results, json!({}))["runs"][0].clone()
    };
    let log = |runs: &[Value]| json!({ "version": "2.1.0", "runs": runs }).to_string();
    let both = log(&[run("One", &[SQLI]), run("Two", &[XSS])]);
    workspace.audit(&[workspace.upload_as("all.sarif", both.as_bytes())]);
    let one = log(&[run("One", &[])]);
    let told = workspace.audit(&[workspace.upload_as("all.sarif", one.as_bytes())]);
    assert_eq!(count(&told, "gone"), 1);
    assert_eq!(workspace.state("sqli"), "verified");
    assert_eq!(workspace.state("xss"), "new");
    assert!(warns(&told, &["Two", "file:all.sarif", "1 finding"]), "{told:#}");
}

#[test]
fn what_a_newer_file_showed_is_not_gone_by_an_older_one() {
    let workspace = Workspace::new();
    let clean = workspace.upload_as("a.sarif", &sarif("ESLint", &[]));
    let looked = sarif_with("ESLint", &[], artifacts(&["front/login.js"]));
    let looked = workspace.upload_as("b.sarif", &looked);
    workspace.audit(&[workspace.upload_as("a.sarif", &sarif("ESLint", &[SQLI]))]);
    let told = workspace.audit(&[looked, clean]);
    assert_eq!((count(&told, "gone"), workspace.state("sqli")), (0, json!("new")));
    assert!(warns(&told, &["file:a.sarif", "1 finding"]), "{told:#}");
}

#[test]
fn an_older_file_does_not_bring_back_what_a_newer_one_ran_without() {
    let workspace = Workspace::new();
    let old = workspace.upload_as("a.sarif", &sarif("ESLint", &[SQLI]));
    workspace.audit(std::slice::from_ref(&old));
    let looked = sarif_with("ESLint", &[], artifacts(&["front/login.js"]));
    let new = workspace.upload_as("b.sarif", &looked);
    assert_eq!(count(&workspace.audit(std::slice::from_ref(&new)), "gone"), 1);
    let told = workspace.audit(&[new, old]);
    assert_eq!((count(&told, "reopened"), count(&told, "outdated")), (0, 1));
    assert_eq!(workspace.state("sqli"), "verified");
    let newest = workspace.upload_as("a.sarif", &sarif("ESLint", &[SQLI]));
    assert_eq!(count(&workspace.audit(&[newest]), "reopened"), 1);
}

#[test]
fn a_finding_that_two_files_show_is_gone_when_neither_does() {
    let workspace = Workspace::new();
    let show = |name: &str, results: &[(&str, &str, &str)]| {
        workspace.upload_as(name, &sarif("ESLint", results))
    };
    let told = workspace.audit(&[show("a.sarif", &[SQLI]), show("b.sarif", &[SQLI])]);
    assert_eq!((count(&told, "new"), count(&told, "seen")), (1, 1));
    assert_eq!(count(&workspace.audit(&[show("a.sarif", &[])]), "gone"), 0, "b showed it last");
    assert_eq!(workspace.state("sqli"), "new");
    assert_eq!(count(&workspace.audit(&[show("b.sarif", &[])]), "gone"), 1);
    assert_eq!(workspace.state("sqli"), "verified");
}

#[test]
fn evidence_names_the_stream_of_what_it_carries() {
    let workspace = Workspace::new();
    let carried = |streams: &[&str], results: &[(&str, &str, &str)]| {
        let mut upload = workspace.upload_as("report.sarif", &sarif("ESLint", results));
        upload["streams"] = json!(streams);
        upload
    };
    let (front, back) = ("evidence:ci:lint front", "evidence:ci:lint back");
    let told = workspace.audit(&[carried(&[front], &[SQLI]), carried(&[back], &[XSS])]);
    assert_eq!((count(&told, "new"), count(&told, "superseded")), (2, 0));
    assert_eq!(count(&workspace.audit(&[carried(&[front], &[])]), "gone"), 1);
    assert_eq!(workspace.state("xss"), "new");
    // The same content may belong to two streams, for example two scans without results.
    assert_eq!(count(&workspace.audit(&[carried(&[front, back], &[])]), "gone"), 1);
    assert_eq!(workspace.state("xss"), "verified");
}

#[test]
fn findings_of_before_there_were_streams_keep_their_identity_and_are_not_verified_by_others() {
    let workspace = Workspace::new();
    workspace.audit(&[workspace.upload_as("front.sarif", &sarif("ESLint", &[SQLI, XSS]))]);
    make_former(&workspace);
    let before = workspace.finding("sqli");

    let told = workspace.audit(&[workspace.upload_as("back.sarif", &sarif("ESLint", &[]))]);
    assert_eq!(count(&told, "gone"), 0, "another file says nothing of it");
    assert!(warns(&told, &["ESLint", "2 findings"]), "{told:#}");
    let told = workspace.audit(&[workspace.upload_as("front.sarif", &sarif("ESLint", &[SQLI]))]);
    assert_eq!((count(&told, "new"), count(&told, "gone")), (0, 0));
    let after = workspace.finding("sqli");
    assert_eq!(after["id"], before["id"]);
    assert_eq!(after["identity_fingerprint"], before["identity_fingerprint"]);
    let told = workspace.audit(&[workspace.upload_as("front.sarif", &sarif("ESLint", &[]))]);
    assert_eq!(count(&told, "gone"), 1, "it belongs to the stream that showed it");
    assert_eq!(workspace.state("sqli"), "verified");
    assert_eq!(workspace.state("xss"), "new", "no run since has looked at its file");
    let looked = sarif_with("ESLint", &[], artifacts(&["back/page.js"]));
    assert_eq!(count(&workspace.audit(&[workspace.upload_as("b.sarif", &looked)]), "gone"), 1);
}

#[test]
fn what_was_verified_without_a_look_is_reopened_by_the_file_that_shows_it() {
    let workspace = Workspace::new();
    let old = workspace.upload_as("front.sarif", &sarif("ESLint", &[SQLI, XSS]));
    workspace.audit(std::slice::from_ref(&old));
    workspace.audit(&[workspace.upload_as("front.sarif", &sarif("ESLint", &[]))]);
    make_former(&workspace);
    assert_eq!(workspace.state("sqli"), "verified");
    let looked = sarif_with("ESLint", &[], artifacts(&["front/login.js"]));
    let told = workspace.audit(&[workspace.upload_as("app.sarif", &looked), old]);
    assert_eq!((count(&told, "reopened"), count(&told, "outdated")), (1, 1));
    assert_eq!(workspace.state("sqli"), "verified", "a newer run looked at its file");
    assert_eq!(workspace.state("xss"), "reopened");
}

/// Converts the stored analyses and findings to the format of versions without artifact streams.
fn make_former(workspace: &Workspace) {
    let host = &workspace.host;
    let [mut analysis] = <[Value; 1]>::try_from(host.documents("analyses")).expect("one analysis");
    let group = analysis["group_id"].as_str().expect("a group").to_owned();
    let ids: Vec<Value> = workspace.findings().iter().map(|one| one["id"].clone()).collect();
    for name in ["stream", "group_id", "file_ready_at", "earlier_file_ready_at", "idle"] {
        analysis.as_object_mut().expect("an object").remove(name);
    }
    host.put_document("analyses", &group, analysis);
    for (id, mut finding) in ids.iter().zip(stored_findings(workspace)) {
        finding["analysis_id"] = json!(group);
        for name in ["shown_at", "gone_at"] {
            finding.as_object_mut().expect("an object").remove(name);
        }
        host.put_document("findings", id.as_str().expect("an id"), finding);
    }
}

/// Returns the stored documents of the findings, in the order of `list_findings`.
fn stored_findings(workspace: &Workspace) -> Vec<Value> {
    let stored = workspace.host.documents("findings");
    let of = |rule: &Value| stored.iter().find(|one| one["rule_id"] == *rule).expect("stored");
    workspace.findings().iter().map(|shown| of(&shown["rule_id"]).clone()).collect()
}

#[test]
fn the_list_of_findings_says_what_the_latest_audit_did_not_look_at() {
    let workspace = Workspace::new();
    let limitations = |repository: Option<Uuid>| -> Vec<String> {
        let mut list = Request::to("list_findings").with("limit", 50);
        if let Some(repository) = repository {
            list = list.with("repository_id", json!(repository));
        }
        let page = workspace.host.call(list).expect("a page").body;
        serde_json::from_value(page["limitations"].clone()).expect("texts")
    };
    let front = workspace.upload_as("front.sarif", &sarif("ESLint", &[SQLI]));
    let back = workspace.upload_as("back.sarif", &sarif("ESLint", &[XSS]));
    workspace.audit(&[back.clone(), front.clone()]);
    assert_eq!(limitations(Some(REPOSITORY)), Vec::<String>::new());
    workspace.audit(std::slice::from_ref(&back));
    for repository in [Some(REPOSITORY), None] {
        let told = limitations(repository);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("main") && told[0].contains("file:front.sarif"), "{told:?}");
    }
    assert_eq!(limitations(Some(Uuid::nil())), Vec::<String>::new());
    let bad = workspace.upload_as("front.sarif", b"{}");
    workspace.audit(&[bad.clone(), back.clone(), front]);
    let told = limitations(Some(REPOSITORY));
    assert!(told.iter().any(|text| text.contains(bad["upload_id"].as_str().expect("id"))));
    workspace.audit(&[workspace.upload_as("front.sarif", &sarif("ESLint", &[SQLI])), back]);
    assert_eq!(limitations(None), Vec::<String>::new());
}

#[test]
fn an_audit_names_the_old_file_that_keeps_a_finding_open() {
    let workspace = Workspace::new();
    let scan = |name: &str, results: &[(&str, &str, &str)]| {
        let listed = artifacts(&["front/login.js", "back/page.js"]);
        workspace.upload_as(name, &sarif_with("ESLint", results, listed))
    };
    let old = scan("eslint-1.sarif", &[SQLI, XSS]);
    assert_eq!(workspace.audit(std::slice::from_ref(&old))["warnings"], json!([]));
    let new = scan("eslint-2.sarif", &[XSS]);
    for _ in 0..2 {
        let told = workspace.audit(&[new.clone(), old.clone()]);
        assert_eq!((count(&told, "gone"), workspace.state("sqli")), (0, json!("new")));
        let why = ["1 finding stays open", "eslint-1.sarif", "under the same filename"];
        assert!(warnings(&told).len() == 1 && warns(&told, &why), "{told:#}");
    }
    let told = workspace.audit(&[scan("eslint-1.sarif", &[XSS]), new]);
    assert_eq!((count(&told, "gone"), &told["warnings"]), (1, &json!([])));
}

/// Starts an audit with this input. Returns the payload of the job that imports its findings.
fn start(workspace: &Workspace, number: u128, input: &Value) -> Value {
    let id = Uuid::from_u128(number);
    let audit = json!({
        "audit_id": id, "repository_id": REPOSITORY, "branch_ref": null, "commit_sha": null,
        "started_at": workspace.now(), "inputs": [input], "records": [],
    });
    workspace.host.deliver(id, "audit.started", audit).expect("taken");
    workspace.host.take_jobs().pop().expect("a job").payload
}

/// Runs an import until its next step is of this kind. Returns the payload of that step.
fn import_until(workspace: &Workspace, mut payload: Value, step: &str) -> Value {
    while payload["step"].get(step).is_none() {
        let outcome = workspace.host.run("import_findings", payload, 1).expect("a step");
        let Outcome::Continue(next) = outcome else { panic!("there is no step {step}") };
        payload = serde_json::from_str(&next).expect("JSON");
    }
    payload
}

#[test]
fn the_slower_of_two_audits_at_the_same_time_does_not_undo_the_run_of_the_faster() {
    let workspace = Workspace::new();
    let upload = workspace.upload(&sarif("ESLint", &[SQLI]));
    let slow = import_until(&workspace, start(&workspace, 1, &upload), "apply");
    let fast = import_until(&workspace, start(&workspace, 2, &upload), "gone");
    for payload in [slow, fast] {
        workspace.host.run_to_end("import_findings", payload, 1);
        let told = workspace.host.events().pop().expect("an event");
        assert_eq!(told.name, "audit.findings_imported");
        assert_eq!(told.data["warnings"], json!([]));
    }
}
