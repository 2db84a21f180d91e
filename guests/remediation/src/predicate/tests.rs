//! Tests of predicates: accepted and refused ones, and their results.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn facts() -> Map<String, Json> {
    let facts = json!({
        "audit": { "id": "a", "repository_id": "r", "branch_ref": "main", "commit_sha": null },
        "findings": {
            "total": 9, "open": 3, "new": 1, "reopened": 0, "gone": 2,
            "by_severity": { "critical": 0, "high": 3, "medium": 0, "low": 0, "none": 0 },
            "by_rule": { "js/xss": 3 },
        },
        "dependencies": { "total": 4, "direct": 2, "vulnerable": 1, "advisories": ["CVE-1"] },
    });
    facts.as_object().cloned().expect("an object")
}

#[test]
fn predicates_hold_or_not() {
    let holding = [
        "findings.open == 3",
        "findings.open + 1 == 4 && findings.open < 3.5",
        "findings.by_severity.critical == 0",
        "findings.by_severity['high'] <= 3",
        "findings.by_severity.none == 0 && findings['open'] == 3",
        "findings.by_rule.all(rule, rule.matches('^(js|py)/[a-z-]+$'))",
        "!findings.by_rule.exists(rule, matches(rule, 'sql'))",
        "!('js/sql' in findings.by_rule)",
        "findings.by_rule.all(rule, rule.startsWith('js/'))",
        "!dependencies.advisories.exists(id, id in ['CVE-2', 'CVE-3'])",
        "dependencies.advisories.filter(id, id.contains('CVE')).size() == 1",
        "has(findings.by_rule) && !has(audit.commit_sha.x) || true",
        "audit.commit_sha == null",
        "audit.branch_ref == \"main\" ? findings.gone > 0 : false",
        "size(findings.by_rule) == 1",
        "type(findings.open) == int",
        "dependencies.total % 2 == 0",
        "findings.open in [1, 2, 3]",
    ];
    for source in holding {
        assert_eq!(check(source), Ok(()), "{source}");
        assert_eq!(evaluate(source, &facts()), PredicateResult::Holds, "{source}");
    }
    assert_eq!(evaluate("findings.open == 0", &facts()), PredicateResult::Fails);
}

#[test]
fn every_function_that_is_offered_works() {
    let calls = [
        "size('é') == 1",
        "'abc'.contains('b')",
        "'abc'.startsWith('a')",
        "'abc'.endsWith('c')",
        "'a-1'.matches('^[a-z]-\\\\d$') && matches('é', '^.$')",
        "int('1') == 1",
        "uint(1) == 1u",
        "double(1) == 1.0",
        "string(1) == '1'",
        "bytes('a') == b'a'",
        "bool('true')",
        "type(1) == int",
        "dyn(1) == 1",
    ];
    for source in calls {
        assert_eq!(check(source), Ok(()), "{source}");
        assert_eq!(evaluate(source, &facts()), PredicateResult::Holds, "{source}");
    }
    let offered = |name: &&str| calls.iter().any(|call| call.contains(&format!("{name}(")));
    assert!(names::FUNCTIONS.iter().all(offered));
}

#[test]
fn what_the_facts_do_not_say_is_an_error_of_the_evaluation_only() {
    for source in ["findings.by_rule['js/sql'] == 0", "1 / findings.reopened > 0"] {
        assert_eq!(check(source), Ok(()), "{source}");
        assert!(matches!(evaluate(source, &facts()), PredicateResult::Error(_)), "{source}");
    }
    let absent = evaluate("ownership.unowned == 0", &facts());
    assert_eq!(absent, PredicateResult::Error("Undeclared reference to 'ownership'".to_owned()));
}

#[test]
fn facts_that_are_absent_decide_nothing() {
    let mut facts = facts();
    facts["dependencies"] = json!({});
    for source in [
        "dependencies.vulnerable == 0",
        "!(dependencies.vulnerable > 0)",
        "dependencies['total'] >= 0",
        "dependencies.advisories.size() == 0",
        "!('CVE-1' in dependencies.advisories)",
        "!dependencies.advisories.exists(id, id == 'CVE-1')",
        "findings.by_severity.critical == 0 && dependencies.vulnerable == 0",
    ] {
        assert_eq!(check(source), Ok(()), "{source}");
        let verdict = evaluate(source, &facts);
        assert!(matches!(verdict, PredicateResult::Error(_)), "{source}: {verdict:?}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let refused = [
        (
            "findings.open ==",
            "At line 1, column 17: mismatched input '<EOF>' expecting expression.",
        ),
        ("findings.open == 0;", "At line 1, column 19: unexpected character."),
        (
            "findings.opne == 0",
            "There is no `findings.opne`; `findings` has by_rule, by_severity, gone, new, open, reopened, total.",
        ),
        (
            "findings.by_severity.info == 0",
            "There is no `findings.by_severity.info`; `findings.by_severity` has critical, high, low, medium, none.",
        ),
        (
            "findings['by_severity']['info'] == 0",
            "There is no `findings.by_severity.info`; `findings.by_severity` has critical, high, low, medium, none.",
        ),
        (
            "finding.open == 0",
            "There is no `finding`; an audit's facts are audit, dependencies, findings, ownership.",
        ),
        ("findings.open", "The expression is of the type int, not true or false."),
        (
            "findings.by_rule.all(rule, rule.matches('(js'))",
            "`(js` is not a supported regular expression: found open group without closing ')'.",
        ),
        (
            "audit.id.matches('a{60000}')",
            "`a{60000}` is not a supported regular expression: compiled regex exceeded size limit.",
        ),
        ("audit.id.foo()", "The function `foo` does not exist."),
        ("Finding{open: 1} == 1", "The type `Finding` cannot be created."),
        (
            "[1].all(x, [2].all(y, y > x))",
            "The expression has a macro such as `all` or `exists` within another's condition; `in` checks whether a list has an element.",
        ),
        ("[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]", "expression recursion limit exceeded: 16."),
        (
            "[1].all(x, y > x)",
            "There is no `y`; an audit's facts are audit, dependencies, findings, ownership.",
        ),
    ];
    for (source, expected) in refused {
        assert_eq!(check(source), Err(expected.to_owned()), "{source}");
    }
    for source in ["findings.open + 'a' == 'b'", "!findings.open", "'x' > 1", "size(1) == 1"] {
        assert!(check(source).is_err(), "{source}");
    }
}

#[test]
fn what_is_too_large_is_refused_before_it_does_harm() {
    let deep = [
        "x".repeat(1001),
        "(".repeat(400) + "1" + &")".repeat(400),
        "[".repeat(400) + &"]".repeat(400),
        "!-".repeat(490) + "findings.open",
        "findings.open".to_owned() + &"+1".repeat(490),
        "findings".to_owned() + &".by_rule".repeat(120),
        "findings".to_owned() + &"[0]".repeat(320),
        "true?".repeat(9) + "true" + &":true".repeat(9),
        "[1].map(x,".repeat(40) + "1" + &")".repeat(40),
        "size(".repeat(150) + "'a'" + &")".repeat(150),
        "{1:".repeat(200) + "1" + &"}".repeat(200),
    ];
    for source in deep {
        assert!(check(&source).is_err(), "{source}");
    }
}

#[test]
fn what_doubles_at_each_step_is_refused_with_its_own_error() {
    for step in [".map(x, x + x)", ".map(x, [x, x])", ".filter(x, true)"] {
        let source = format!("[[1, 1]]{} == []", step.repeat(13));
        let refused = check(&source).expect_err(&source);
        assert!(refused.starts_with("The expression costs too much"), "{refused}");
        assert_eq!(evaluate(&source, &facts()), PredicateResult::Error(refused), "{source}");
        let source = format!("[[1, 1]]{} == []", step.repeat(2));
        assert_eq!(check(&source), Ok(()), "{source}");
    }
}

#[test]
fn matches_that_cost_too_much_end_with_their_own_error() {
    let rules: Map<String, Json> = (0..5_000).map(|n| (format!("{n:040}"), json!(1))).collect();
    let facts = json!({ "findings": { "by_rule": rules } }).as_object().cloned().expect("facts");
    let cheap = "findings.by_rule.all(rule, rule.matches('^(js|py)?[0-9-]{1,40}$'))";
    assert_eq!(evaluate(cheap, &facts), PredicateResult::Holds);
    let costly = "!findings.by_rule.exists(rule, rule.matches('[0-9]{300}x'))";
    assert_eq!(check(costly), Ok(()));
    let PredicateResult::Error(why) = evaluate(costly, &facts) else { panic!("it costs too much") };
    assert!(why.contains("steps"), "{why}");
}

#[test]
fn what_is_as_large_as_allowed_is_evaluated() {
    let large = [
        "(".repeat(14) + "findings.open" + &")".repeat(14) + " == 3",
        "findings.open".to_owned() + &"+1".repeat(28) + " > 3",
        vec!["findings.open == 3"; 45].join(" && "),
        "false?true:".repeat(8) + "true",
    ];
    for source in large {
        assert_eq!(check(&source), Ok(()), "{source}");
        assert_eq!(evaluate(&source, &facts()), PredicateResult::Holds, "{source}");
    }
}

/// Generates expressions that are nearly correct.
fn nearly_cel() -> impl Strategy<Value = String> {
    const PIECES: &str = r#"
        findings . open by_rule [ ] ( ) 'a' == && || ! - 1 0u 1.5 -9223372036854775808 / % * + ? :
        , { } in all exists x has size true null b'\xff' 'é😀' \ " r' // map type int
        dependencies.advisories
    "#;
    let pieces: Vec<&str> = PIECES.split_whitespace().chain([" ", "\n"]).collect();
    let pieces = prop::sample::select(pieces);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_makes_it_panic(source in prop_oneof![nearly_cel(), any::<String>()]) {
        let refused = check(&source).err();
        let failed = match evaluate(&source, &facts()) {
            PredicateResult::Error(why) => Some(why),
            PredicateResult::Holds | PredicateResult::Fails => None,
        };
        for text in refused.into_iter().chain(failed) {
            prop_assert!(!text.is_empty() && text.chars().count() <= MAX_ERROR_CHARS + 1);
        }
    }
}
