//! Tests of the SARIF parser with files of scanners, of the standard's authors and of other
//! projects' test suites, and with invalid files.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::Uuid;
use area_sdk::testing::WORKSPACE;
use area_shared::testing::{corpus, files_with};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::identity::FindingIdentityGenerator;
use crate::observation::ResultObservation;
use crate::severity::{Severity, SeveritySource};

const REPOSITORY: Uuid = Uuid::from_u128(1);

/// Parses a SARIF log. Returns the observations of each run, or the reason why the run is refused.
fn read(bytes: &[u8]) -> Result<Vec<Result<Vec<ResultObservation>, SarifRefusal>>, SarifRefusal> {
    let observe = |run: Result<ScanRun<'_>, SarifRefusal>| {
        let run = run?;
        run.check()?;
        let identities = FindingIdentityGenerator::new(WORKSPACE, REPOSITORY);
        run.results(identities).into_iter().flatten().collect()
    };
    Ok(open(bytes)?.iter().map(observe).collect())
}

/// Parses a SARIF log, and returns the observations of its first run.
fn first_run(log: &serde_json::Value) -> Result<Vec<ResultObservation>, SarifRefusal> {
    read(log.to_string().as_bytes()).expect("a log").remove(0)
}

fn only(log: serde_json::Value) -> ResultObservation {
    first_run(&log).expect("a run").remove(0)
}

/// Builds a SARIF log of one run with this result and these rules.
fn of_result(result: serde_json::Value, rules: serde_json::Value) -> serde_json::Value {
    let driver = json!({ "name": "Tool", "rules": rules });
    json!({ "version": "2.1.0", "runs": [{ "tool": { "driver": driver }, "results": [result] }] })
}

#[test]
fn results_come_rule_by_rule_and_are_the_findings_they_were() {
    let result = |rule: &str, line: i64| {
        let region = json!({ "startLine": line });
        let place = json!({ "artifactLocation": { "uri": "a.rs" }, "region": region });
        json!({ "ruleId": rule, "message": { "text": "m" }, "locations": [{ "physicalLocation": place }] })
    };
    let results = [result("b", 1), result("a", 2), result("b", 3), result("a", 4)];
    let driver = json!({ "name": "Tool" });
    let log = |results: &[serde_json::Value]| {
        let run = json!({ "tool": { "driver": driver }, "results": results });
        first_run(&json!({ "version": "2.1.0", "runs": [run] })).expect("a run")
    };
    let seen = |observation: &ResultObservation| {
        (observation.source.rule_id.clone(), observation.locations[0].start_line)
    };
    let mixed = log(&results);
    let order: Vec<_> = mixed.iter().map(seen).collect();
    let expected = [("a", 2), ("a", 4), ("b", 1), ("b", 3)];
    assert_eq!(order, expected.map(|(rule, line)| (rule.to_owned(), Some(line))));
    // Equal results are numbered in the order of the file.
    let alone = log(&[results[0].clone(), results[2].clone()]);
    let identities = |all: &[ResultObservation]| -> Vec<String> {
        all.iter().map(|one| one.identity.clone()).collect()
    };
    assert_eq!(identities(&mixed)[2..], identities(&alone));
}

#[test]
fn ordinals_of_equal_results_do_not_depend_on_their_commits() {
    let identities = |commits: [&str; 2]| -> BTreeMap<Option<i64>, String> {
        let result = |at: usize| {
            let region = json!({ "startLine": at + 1, "snippet": { "text": "key" } });
            let place = json!({ "artifactLocation": { "uri": "a.rs" }, "region": region });
            json!({
                "ruleId": "r", "message": { "text": "m" },
                "partialFingerprints": { "commitSha": commits[at] },
                "locations": [{ "physicalLocation": place }],
            })
        };
        let run =
            json!({ "tool": { "driver": { "name": "Tool" } }, "results": [result(0), result(1)] });
        let all = first_run(&json!({ "version": "2.1.0", "runs": [run] })).expect("a run");
        all.into_iter().map(|one| (one.locations[0].start_line, one.identity)).collect()
    };
    assert_eq!(identities(["a", "b"]), identities(["b", "a"]));
}

/// Formats the parse result: for each run, the number of observations or the code of the refusal.
fn summary(bytes: &[u8]) -> String {
    match read(bytes) {
        Err(refusal) => refusal.code.to_owned(),
        Ok(runs) => {
            let each = runs.iter().map(|run| match run {
                Ok(observations) => observations.len().to_string(),
                Err(refusal) => refusal.code.to_owned(),
            });
            each.collect::<Vec<_>>().join(" ")
        }
    }
}

#[test]
fn every_file_of_the_corpus_is_read_or_refused_as_it_should_be() {
    let Some(corpus) = corpus("") else { return };
    let expected: BTreeMap<&str, &str> = [
        ("checkov-openapi.sarif", "sarif_tool_missing"),
        ("empty-sarif.sarif", "0"),
        ("fingerprinting.expected.sarif", "2"),
        ("fingerprinting.input.sarif", "2"),
        ("fingerprinting2.expected.sarif", "1"),
        ("fingerprinting2.input.sarif", "1"),
        ("invalid-sarif.sarif", "sarif_invalid"),
        ("tool-names.sarif", "0 0 0 sarif_tool_missing sarif_tool_missing"),
        ("valid-sarif.sarif", "1 2"),
        ("with-invalid-uri.sarif", "1"),
        ("codeql_defectdojo.sarif", "72"),
        ("dockle-0.3.15.sarif", "4"),
        ("eslint-codacy.sarif", "4"),
        // One of the 54 results is a passed check.
        ("flawfinder.sarif", "53"),
        ("gitleaks-7.5.0.sarif", "8"),
        ("gosec-go-yara.sarif", "26"),
        ("grype-image.sarif", "2"),
        ("no_runs.sarif", ""),
        ("oasis-appendix-k-comprehensive.sarif", "1"),
        ("oasis-appendix-k1-double.sarif", "0 0"),
        ("oasis-appendix-k1-minimal.sarif", "0"),
        ("semgrep-owasp-benchmark.sarif", "1768"),
        ("suppressions-current.sarif", "4"),
        ("suppressions.sarif", "5"),
        ("trivy-demo.sarif", "124"),
        // One of the four results has the `baselineState` `absent`: only an earlier run found it.
        ("Baseline.sarif", "3"),
        ("CodeFlows.sarif", "1"),
        ("ContextRegion.sarif", "1"),
        ("DefaultRuleConfiguration.sarif", "2"),
        ("EmbeddedBinaryContent.sarif", "1"),
        ("EmbeddedTextContent.sarif", "2"),
        ("Notifications.sarif", "0"),
        ("OriginalUriBaseIds.sarif", "3"),
        ("RegionVariants.sarif", "18"),
        ("ResultStacks.sarif", "1"),
        ("RuleMetadata.sarif", "1"),
        ("Suppressions.sarif", "9"),
        ("Taxonomies.sarif", "2"),
        ("_template.sarif", "1"),
        ("bandit-ggshield-2023-05-31-cff4196951.sarif", "26"),
        ("bandit-ggshield-2024-05-31-2bc6aaba7b.sarif", "47"),
        ("bandit-ggshield-2025-05-30-812be62935.sarif", "55"),
        ("bandit-ggshield-2026-08-20-eaa3e43b1a.sarif", "82"),
    ]
    .into();
    let folders = ["sarif", "series"].map(|folder| corpus.join(folder));
    let found: Vec<_> = folders.iter().flat_map(|folder| files_with(folder, "sarif")).collect();
    let names = found.iter().map(|path| path.file_name().expect("a name").to_string_lossy());
    let names: BTreeSet<String> = names.map(std::borrow::Cow::into_owned).collect();
    assert_eq!(names, expected.keys().map(|&name| name.to_owned()).collect());
    for path in found {
        let name = path.file_name().expect("a name").to_string_lossy();
        let bytes = std::fs::read(&path).expect("a file");
        assert_eq!(summary(&bytes), expected[&*name], "{name}");
    }
}

fn of_corpus(name: &str) -> Option<Vec<ResultObservation>> {
    let bytes = std::fs::read(corpus("sarif")?.join(name)).expect("a file");
    Some(read(&bytes).expect("a log").remove(0).expect("a run"))
}

#[test]
fn severities_of_real_scanners_come_from_where_they_say_them() {
    let sources = |name: &str| -> Option<BTreeMap<(Severity, String), usize>> {
        let mut counts = BTreeMap::new();
        for one in of_corpus(name)? {
            let source = format!("{:?}", one.rating.severity_source);
            *counts.entry((one.rating.risk_severity, source)).or_default() += 1;
        }
        Some(counts)
    };
    let Some(trivy) = sources("trivy-demo.sarif") else { return };
    assert!(trivy.keys().all(|(_, source)| source == "Scanner"), "{trivy:?}");
    let grype = of_corpus("grype-image.sarif").expect("the corpus");
    assert_eq!(grype[0].rating.risk_severity, Severity::High);
    assert_eq!(grype[0].rating.severity_source, SeveritySource::Cvss);
    assert_eq!(grype[0].rating.cvss_tenths, Some(82));
    assert_eq!(grype[0].rating.scanner_severity, "note");
    let flawfinder = of_corpus("flawfinder.sarif").expect("the corpus");
    let by_rule = |one: &ResultObservation| one.rating.risk_severity == Severity::High;
    assert!(flawfinder.iter().any(by_rule), "the rule's default level");
    let semgrep = sources("semgrep-owasp-benchmark.sarif").expect("the corpus");
    assert!(semgrep.keys().all(|(_, source)| source == "Level"), "{semgrep:?}");
}

#[test]
fn identities_are_unique_within_every_file_and_survive_another_reading() {
    let Some(corpus) = corpus("") else { return };
    for path in files_with(&corpus, "sarif") {
        let bytes = std::fs::read(&path).expect("a file");
        let identities = || -> Vec<String> {
            let runs = read(&bytes).into_iter().flatten().flatten();
            runs.flatten().map(|observation| observation.identity).collect()
        };
        let first = identities();
        let unique: BTreeSet<&String> = first.iter().collect();
        assert_eq!(unique.len(), first.len(), "{}", path.display());
        assert_eq!(first, identities(), "{}", path.display());
    }
}

#[test]
fn messages_rules_and_places_are_resolved() {
    let Some(found) = of_corpus("oasis-appendix-k-comprehensive.sarif") else { return };
    let [one] = &found[..] else { panic!("one finding") };
    assert_eq!(one.title, "A variable was used without being initialized.");
    assert_eq!(one.locations[0].path.as_deref(), Some("src/collections/list.h"));
    assert_eq!(one.revision.as_deref(), Some("5da53fbb2a0aaa12d648b73984acc9aac2e11c2a"));
    let paths = |name| -> Vec<String> {
        of_corpus(name).into_iter().flatten().flat_map(|one| one.paths()).collect()
    };
    assert_eq!(paths("tutorial/OriginalUriBaseIds.sarif"), ["README.md", "src/io/kb.c", "."]);
    assert_eq!(paths("codeql-action/with-invalid-uri.sarif"), ["not a valid URI"]);
    assert_eq!(paths("suppressions.sarif")[0], "C:/code/file1.c");
}

#[test]
fn accepted_suppressions_count_and_others_do_not() {
    let Some(found) = of_corpus("tutorial/Suppressions.sarif") else { return };
    let suppressed: Vec<bool> = found.iter().map(|one| one.suppressed.is_some()).collect();
    // A result is suppressed only if none of its `suppressions` is rejected or under review.
    let expected = [false, true, true, false, true, false, false, false, false];
    assert_eq!(suppressed, expected);
}

#[test]
fn refusals_name_the_place_and_what_to_mend() {
    let detail = |text: &str| match read(text.as_bytes()) {
        Err(refusal) => refusal.detail,
        Ok(mut runs) => runs.remove(0).expect_err("refused").detail,
    };
    assert!(detail("{").starts_with("The log: EOF"));
    assert!(detail("[]").contains("expected struct Log"));
    assert!(detail("{\"version\":\"2.1.0\"}").contains("/runs is missing"));
    assert!(detail("{\"version\":\"1.0.0\",\"runs\":[]}").contains("write SARIF 2.1.0"));
    assert!(detail("{\"runs\":[]}").contains("/version is missing"));
    let run = |run: &str| detail(&format!("{{\"version\":\"2.1.0\",\"runs\":[{run}]}}"));
    assert!(run("{}").contains("/runs/0/tool/driver/name"));
    assert!(run("{\"tool\":{\"driver\":{\"name\":7}}}").starts_with("/runs/0/tool/driver/name:"));
    assert!(run("{\"results\":42}").starts_with("/runs/0/results: invalid type"));
    let result = "{\"tool\":{\"driver\":{\"name\":\"x\"}},\"results\":[{},{\"locations\":[7]}]}";
    assert!(
        run(result).starts_with("/runs/0/results/1/locations/0: invalid type"),
        "{}",
        run(result)
    );
    let base = |name: &str| run(&format!("{{\"originalUriBaseIds\":{{\"{name}\":7}}}}"));
    assert!(base("A\\u0000").starts_with("/runs/0/originalUriBaseIds/A: invalid type"));
    let long = base(&"A".repeat(100_000));
    assert!(long.len() < 500 && long.contains("invalid type"), "{long}");
    assert_eq!(read(b"\xff{}").expect_err("refused").code, "not_utf8");
    assert!(read(b"\xef\xbb\xbf{\"version\":\"2.1.0\",\"runs\":[]}").is_ok(), "a byte order mark");
    let deep = format!("{{\"version\":\"2.1.0\",\"runs\":{}", "[".repeat(100_000));
    assert!(read(deep.as_bytes()).is_err());
}

#[test]
fn runs_say_whether_they_ended_well_and_of_what_they_are() {
    let run = |extra: serde_json::Value| {
        let mut run = json!({ "tool": { "driver": { "name": "Tool", "semanticVersion": "1.2" } } });
        for (name, value) in extra.as_object().expect("an object") {
            run[name] = value.clone();
        }
        let log = json!({ "version": "2.1.0", "runs": [run] }).to_string();
        let runs = open(log.as_bytes()).expect("a log");
        let run = runs.iter().next().expect("one").expect("a run");
        (run.successful, run.subject.category, run.version)
    };
    let version = Some("1.2".to_owned());
    assert_eq!(run(json!({})), (false, String::new(), version.clone()), "no results, no run");
    let named = json!({ "results": [], "automationDetails": { "id": "a/b/2026-01-01" } });
    assert_eq!(run(named), (true, "a/b".to_owned(), version.clone()));
    let plain = json!({ "results": [], "automationDetails": { "id": "backend" } });
    assert_eq!(run(plain), (true, String::new(), version.clone()), "the name of a run alone");
    let slash = json!({ "results": [], "automationDetails": { "id": "backend/" } });
    assert_eq!(run(slash), (true, "backend".to_owned(), version.clone()));
    let failed = json!({ "results": [], "invocations": [
        { "executionSuccessful": true }, { "executionSuccessful": false },
    ] });
    assert_eq!(run(failed), (false, String::new(), version));
}

#[test]
fn rules_are_found_by_index_id_beginning_and_extension() {
    let rules = json!([
        { "id": "A", "shortDescription": { "text": "of A" } },
        { "id": "B", "messageStrings": { "m": { "text": "'{0}' is bad" } }, "name": "NameB" },
    ]);
    let title = |result| only(of_result(result, rules.clone())).title;
    assert_eq!(title(json!({ "ruleIndex": 0 })), "of A");
    assert_eq!(title(json!({ "ruleId": "A/sub/1" })), "of A");
    assert_eq!(title(json!({ "rule": { "id": "A" } })), "of A");
    let by_name = json!({ "ruleId": "B", "message": { "id": "m", "arguments": ["x"] } });
    assert_eq!(title(by_name), "'x' is bad");
    assert_eq!(title(json!({ "ruleId": "B" })), "NameB");
    assert_eq!(title(json!({ "ruleId": "C", "ruleIndex": 9 })), "C");
    assert_eq!(title(json!({})), "unspecified");

    let mut log = of_result(
        json!({ "rule": { "index": 0, "toolComponent": { "index": 0 } } }),
        rules.clone(),
    );
    let extension = json!([{ "name": "X", "rules": [{ "id": "EXT", "name": "Extended" }] }]);
    log["runs"][0]["tool"]["extensions"] = extension;
    let found = only(log);
    assert_eq!((found.source.rule_id.as_str(), found.title.as_str()), ("EXT", "Extended"));
}

#[test]
fn a_result_without_a_text_has_the_message_in_markdown() {
    let title = |message: serde_json::Value| {
        only(of_result(json!({ "ruleId": "A", "message": message }), json!([]))).title
    };
    let markdown = json!({ "markdown": "`{0}` should be `and`", "arguments": ["abd"] });
    assert_eq!(title(markdown), "`abd` should be `and`");
    assert_eq!(title(json!({ "text": "plain", "markdown": "**bold**" })), "plain");
    assert_eq!(title(json!({ "id": "unknown", "markdown": "**bold**" })), "**bold**");
}

#[test]
fn rules_are_found_by_guid_and_first_in_the_component_that_is_named() {
    let rules = json!([
        { "id": "S", "guid": "AAAAAAAA-0000-4000-8000-000000000001", "name": "OfDriver" },
    ]);
    let title = |rule: serde_json::Value| {
        let mut log = of_result(json!({ "rule": rule }), rules.clone());
        log["runs"][0]["tool"]["extensions"] = json!([{
            "name": "E", "guid": "bbbbbbbb-0000-4000-8000-000000000002",
            "rules": [{ "id": "S", "name": "OfExtension" }],
        }]);
        only(log).title
    };
    assert_eq!(title(json!({ "guid": "aaaaaaaa-0000-4000-8000-000000000001" })), "OfDriver");
    assert_eq!(title(json!({ "id": "S" })), "OfDriver");
    assert_eq!(title(json!({ "id": "S", "toolComponent": { "name": "E" } })), "OfExtension");
    let by_guid = json!({ "guid": "BBBBBBBB-0000-4000-8000-000000000002" });
    assert_eq!(title(json!({ "index": 0, "toolComponent": by_guid })), "OfExtension");
}

#[test]
fn an_override_is_of_the_invocation_that_a_result_names() {
    let rating = |invocations: serde_json::Value, invocation: i64| {
        let result = json!({ "ruleId": "A", "provenance": { "invocationIndex": invocation } });
        let mut log = of_result(result, json!([{ "id": "A" }]));
        log["runs"][0]["invocations"] = invocations;
        only(log).rating
    };
    let set = |descriptor: serde_json::Value, level: &str| {
        json!({ "executionSuccessful": true, "ruleConfigurationOverrides": [
            { "descriptor": descriptor, "configuration": { "level": level } },
        ] })
    };
    let plain = rating(json!([]), 0);
    let error = rating(json!([set(json!({ "id": "A" }), "error")]), 0);
    assert_ne!(error, plain);
    assert_eq!(rating(json!([set(json!({ "index": 0 }), "error")]), 0), error);
    let two = json!([set(json!({ "id": "A" }), "error"), { "executionSuccessful": true }]);
    assert_eq!((rating(two.clone(), 0), rating(two, 1)), (error, plain));
}

#[test]
fn results_beside_the_run_are_read_and_those_in_other_files_refused() {
    let guid = "cccccccc-0000-4000-8000-000000000003";
    let log = |inline: &str| {
        json!({
            "version": "2.1.0",
            "inlineExternalProperties": [{ "guid": inline, "results": [{ "ruleId": "A" }] }],
            "runs": [{
                "tool": { "driver": { "name": "Tool" } },
                "externalPropertyFileReferences": { "results": [{ "guid": guid }] },
            }],
        })
    };
    assert_eq!(only(log(guid)).source.rule_id, "A");
    let other = log("dddddddd-0000-4000-8000-000000000004");
    let refused = first_run(&other).expect_err("refused");
    assert_eq!(refused.code, "sarif_results_elsewhere");
}

#[test]
fn a_run_whose_severities_or_outcome_are_elsewhere_is_refused() {
    let read = |references: serde_json::Value| {
        let mut log = of_result(json!({ "ruleId": "A" }), json!([]));
        log["runs"][0]["externalPropertyFileReferences"] = references;
        first_run(&log)
    };
    let reference = json!({ "guid": "cccccccc-0000-4000-8000-000000000003" });
    assert!(read(json!({ "taxonomies": [reference], "artifacts": [] })).is_ok());
    for name in ["driver", "extensions", "invocations", "artifacts"] {
        let list = json!([reference]);
        let references = json!({ name: if name == "driver" { &reference } else { &list } });
        let refused = read(references).expect_err(name);
        assert_eq!(refused.code, "sarif_properties_elsewhere");
        let place = format!("/runs/0/externalPropertyFileReferences/{name} ");
        assert!(refused.detail.starts_with(&place), "{}", refused.detail);
    }
}

#[test]
fn results_next_to_the_runs_are_those_of_one_run_and_count_once() {
    let guid = "CCCCCCCC-0000-4000-8000-000000000003";
    let run = json!({
        "tool": { "driver": { "name": "Tool" } },
        "externalPropertyFileReferences": {
            "results": vec![json!({ "guid": guid.to_lowercase() }); 1_000],
        },
    });
    let inline = json!([{ "guid": guid, "results": vec![json!({ "ruleId": "A" }); 10] }]);
    let log = json!({ "version": "2.1.0", "inlineExternalProperties": inline, "runs": [run, run] });
    assert_eq!(summary(log.to_string().as_bytes()), "10 sarif_results_shared");
}

#[test]
fn a_line_may_be_written_with_a_point() {
    let region = |line: f64| {
        let place = json!({ "artifactLocation": { "uri": "a" }, "region": { "startLine": line } });
        let result = json!({ "locations": [{ "physicalLocation": place }] });
        first_run(&of_result(result, json!([])))
    };
    assert_eq!(region(10.0).expect("a run")[0].locations[0].start_line, Some(10));
    assert!(region(10.5).is_err());
}

#[test]
fn identity_does_not_look_at_line_severity_or_version() {
    let result = |line: u32, level: &str, message: &str| {
        let region = json!({ "startLine": line, "snippet": { "text": "let  a = 1;" } });
        let location = json!({ "artifactLocation": { "uri": "src/a.rs" }, "region": region });
        json!({
            "ruleId": "R", "level": level, "message": { "text": message },
            "locations": [{ "physicalLocation": location }],
        })
    };
    let first = only(of_result(result(1, "error", "one"), json!([])));
    let mut moved = of_result(result(99, "note", "other words"), json!([]));
    moved["runs"][0]["tool"]["driver"]["version"] = json!("9.9");
    assert_eq!(only(moved).identity, first.identity);
    let mut elsewhere = of_result(result(1, "error", "one"), json!([]));
    elsewhere["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] =
        json!("src/b.rs");
    assert_ne!(only(elsewhere).identity, first.identity);
}

proptest! {
    #[test]
    fn nothing_that_is_sent_makes_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    /// Property: the parser does not panic for values of unexpected types or texts in any position.
    #[test]
    fn odd_values_are_read_or_refused(
        uri in ".*", text in ".*", number in any::<i64>(), id in ".*",
        odd in prop_oneof![Just(json!(null)), Just(json!([])), Just(json!({})), Just(json!(1.5)), Just(json!("x"))],
        place in 0_usize..6,
    ) {
        let mut result = json!({
            "ruleId": id, "ruleIndex": number, "level": text, "message": { "text": text, "arguments": [uri] },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": uri, "uriBaseId": id, "index": number },
                "region": { "startLine": number, "snippet": { "text": text } },
            } }],
            "properties": { "security-severity": text, "purl": uri, "tags": [id] },
        });
        let names = ["ruleId", "locations", "message", "fingerprints", "suppressions", "properties"];
        result[names[place]] = odd;
        let _ = read(of_result(result, json!([{ "id": text }])).to_string().as_bytes());
    }
}
