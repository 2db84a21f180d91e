//! Tests of equal results in one path: a decision stays with the result about which it was made.

use super::*;

const NINE: &str = "Package: gcc-9-base";
const TEN: &str = "Package: gcc-10-base";
const ELEVEN: &str = "Package: gcc-11-base";

/// Property by which all results of a test are equal.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Key {
    Message,
    Snippet,
    Fingerprint,
}

/// Builds a SARIF log with one result of R1 in `a.py` for each (line, message).
fn log(key: Key, results: &[(i64, &str)]) -> Vec<u8> {
    let results: Vec<Value> = results
        .iter()
        .map(|(line, message)| {
            let mut region = json!({ "startLine": line });
            if key != Key::Message {
                region["snippet"] = json!({ "text": "eval(x)" });
            }
            let prints = if key == Key::Fingerprint { json!({ "own/v1": "x" }) } else { json!({}) };
            let place = json!({ "artifactLocation": { "uri": "a.py" }, "region": region });
            json!({
                "ruleId": "R1", "message": { "text": message }, "partialFingerprints": prints,
                "locations": [{ "physicalLocation": place }],
            })
        })
        .collect();
    let run = json!({ "tool": { "driver": { "name": "Tool" } }, "results": results });
    json!({ "version": "2.1.0", "runs": [run] }).to_string().into_bytes()
}

/// Builds a log of results at line 1 whose messages differ in digits only.
fn packages(messages: &[&str]) -> Vec<u8> {
    let results: Vec<(i64, &str)> = messages.iter().map(|message| (1, *message)).collect();
    log(Key::Message, &results)
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

fn line(finding: &Value) -> i64 {
    finding["locations"][0]["start_line"].as_i64().expect("a line")
}

impl Workspace {
    /// Marks the finding with this line and title as a false positive.
    fn dismiss(&self, at: i64, title: &str) {
        let found = self.list(Request::to("list_findings").with("limit", 100).with("q", title));
        let one = found.iter().find(|one| line(one) == at && one["title"] == title);
        let body = json!({ "to_state": "false_positive" });
        let request = self.transition(one.expect("a finding"), body).if_match(1);
        self.host.call(request).expect("allowed");
    }

    /// Returns line, title and state of the findings that the latest scan reported.
    fn present(&self) -> Vec<(i64, String, String)> {
        let present = self.findings().into_iter().filter(|one| one["present"] == true);
        let present = present.map(|one| (line(&one), text(&one["title"]), text(&one["state"])));
        let mut present: Vec<_> = present.collect();
        present.sort();
        present
    }

    /// Removes what older versions did not store from all findings.
    fn make_findings_former(&self) {
        for finding in self.findings() {
            let mut all = self.host.documents("findings").into_iter();
            let own = |one: &Value| one["identity_fingerprint"] == finding["identity_fingerprint"];
            let mut stored = all.find(own).expect("stored");
            stored.as_object_mut().expect("an object").remove("message_hash").expect("stored");
            self.host.put_document("findings", &text(&finding["id"]), stored);
        }
    }
}

fn expected(findings: &[(i64, &str, &str)]) -> Vec<(i64, String, String)> {
    let owned = |(line, title, state): &(i64, &str, &str)| {
        (*line, (*title).to_owned(), (*state).to_owned())
    };
    let mut all: Vec<_> = findings.iter().map(owned).collect();
    all.sort();
    all
}

/// Decides about one of two equal results. Scans one of them, then both.
fn decide_and_scan(file: [&str; 2], decided: &str, left: &str, is_former: bool) {
    let workspace = Workspace::new();
    workspace.scan(&packages(&file));
    workspace.dismiss(1, decided);
    if is_former {
        workspace.make_findings_former();
    }
    workspace.scan(&packages(&[left]));
    let state = if left == decided { "false_positive" } else { "new" };
    assert_eq!(workspace.present(), expected(&[(1, left, state)]), "{file:?} {decided}");
    let told = workspace.scan(&packages(&[TEN, NINE]));
    assert_eq!(told["counts"]["new"], 0);
    let (other, state) = (
        if decided == NINE { TEN } else { NINE },
        if left == decided { "reopened" } else { "new" },
    );
    let both = expected(&[(1, decided, "false_positive"), (1, other, state)]);
    assert_eq!(workspace.present(), both, "{file:?} {left}");
}

#[test]
fn a_decision_stays_with_its_message() {
    for file in [[NINE, TEN], [TEN, NINE]] {
        for (decided, left) in [(NINE, NINE), (NINE, TEN), (TEN, NINE), (TEN, TEN)] {
            decide_and_scan(file, decided, left, false);
            decide_and_scan(file, decided, left, true);
        }
    }
}

#[test]
fn a_decision_about_a_message_that_is_gone_does_not_apply_to_another() {
    let workspace = Workspace::new();
    workspace.scan(&packages(&[NINE, TEN]));
    workspace.dismiss(1, NINE);
    workspace.scan(&packages(&[TEN]));
    let told = workspace.scan(&packages(&[TEN, ELEVEN]));
    assert_eq!((&told["counts"]["new"], &told["counts"]["gone"]), (&json!(1), &json!(0)));
    assert_eq!(workspace.present(), expected(&[(1, TEN, "new"), (1, ELEVEN, "new")]));
}

#[test]
fn a_decision_about_a_lone_result_stays_when_its_message_changes() {
    let workspace = Workspace::new();
    workspace.scan(&packages(&[NINE]));
    workspace.dismiss(1, NINE);
    workspace.scan(&packages(&[]));
    let told = workspace.scan(&log(Key::Message, &[(7, TEN)]));
    assert_eq!(told["counts"]["new"], 0);
    assert_eq!(workspace.present(), expected(&[(7, TEN, "false_positive")]));
}

/// Lines of the first scan, decided line, lines of the next scan, line with the decision.
type LineCase = (&'static [i64], i64, &'static [i64], Option<i64>);

#[test]
fn a_decision_stays_with_its_line() {
    let cases: [LineCase; 7] = [
        (&[10, 20], 10, &[20], None),
        (&[10, 20], 10, &[19], None),
        (&[10, 20], 20, &[10], None),
        (&[10, 20], 20, &[20, 10], Some(20)),
        (&[10, 20], 20, &[10, 15, 20], Some(20)),
        (&[10], 10, &[5, 10], Some(10)),
        // A line was added before both.
        (&[10, 11], 10, &[11, 12], Some(11)),
    ];
    for key in [Key::Message, Key::Snippet, Key::Fingerprint] {
        for (first, decided, next, stays) in cases {
            let scan = |lines: &[i64]| {
                let results: Vec<(i64, &str)> = lines.iter().map(|line| (*line, "m")).collect();
                log(key, &results)
            };
            let workspace = Workspace::new();
            workspace.scan(&scan(first));
            workspace.dismiss(decided, "m");
            workspace.scan(&scan(next));
            let state = |line| if stays == Some(line) { "false_positive" } else { "new" };
            let all: Vec<_> = next.iter().map(|line| (*line, "m", state(*line))).collect();
            assert_eq!(workspace.present(), expected(&all), "{key:?} {first:?} {next:?}");
        }
    }
}

#[test]
fn a_decision_stays_when_a_scan_begins_to_write_snippets_or_fingerprints() {
    use Key::{Fingerprint, Message, Snippet};
    for (former, key) in [(Message, Snippet), (Message, Fingerprint), (Snippet, Fingerprint)] {
        let workspace = Workspace::new();
        workspace.scan(&log(former, &[(10, "m"), (20, "m")]));
        workspace.dismiss(20, "m");
        for _ in 0..2 {
            workspace.scan(&log(key, &[(12, "m"), (22, "m")]));
            let both = expected(&[(12, "m", "new"), (22, "m", "false_positive")]);
            assert_eq!(workspace.present(), both, "{former:?} {key:?}");
        }
    }
}

#[test]
fn a_result_with_a_stronger_key_takes_no_finding_that_is_reported_or_gone() {
    let mut both = sarif_log("Tool", &[("R1", "a.py", "m"); 2], json!({}));
    let region = json!({ "startLine": 20, "snippet": { "text": "eval(x)" } });
    both["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"] = region;
    let gone = vec![log(Key::Message, &[]), log(Key::Snippet, &[(20, "m")])];
    for scans in [vec![both.to_string().into_bytes()], gone] {
        let workspace = Workspace::new();
        workspace.scan(&log(Key::Message, &[(3, "m")]));
        workspace.dismiss(3, "m");
        scans.iter().for_each(|log| drop(workspace.scan(log)));
        let all = [(3, "m", "false_positive"), (20, "m", "new")];
        assert_eq!(workspace.present(), expected(&all[scans.len() - 1..]));
    }
}

#[test]
fn a_decision_stays_with_one_of_many_equal_results() {
    // The first log is cut between equal results; the second one has more than are compared.
    for (count, words) in [(300, ["even", "odd"]), (850, ["item", "item"])] {
        let workspace = Workspace::new();
        let messages: Vec<String> =
            (0..count).map(|number| format!("{} {number}", words[number % 2])).collect();
        let results: Vec<(i64, &str)> = (0..).zip(messages.iter().map(String::as_str)).collect();
        workspace.scan(&log(Key::Message, &results));
        workspace.dismiss(251, &messages[251]);
        let left = &results[2..];
        let told = workspace.scan(&log(Key::Message, left));
        assert_eq!((&told["counts"]["new"], &told["counts"]["gone"]), (&json!(0), &json!(2)));
        assert_eq!(told["counts"]["seen"], left.len());
        let settled = Request::to("list_findings").with("limit", 50);
        let settled = workspace.list(settled.with("state", "false_positive"));
        let lines: Vec<i64> = settled.iter().map(line).collect();
        assert_eq!((lines, &settled[0]["present"]), (vec![251], &json!(true)));
    }
}
