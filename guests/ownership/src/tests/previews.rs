//! Tests of previews and their application.

use area_sdk::testing::{FakeHost, Request, SuccessResponse, USER};
use area_sdk::wit::assurance::area::types::ProblemKind;
use area_sdk::{Problem, Role, Uuid};
use serde_json::{Value, json};

use super::*;

fn preview(host: &FakeHost) -> Value {
    let body = json!({ "repository_id": REPOSITORY });
    host.call(Request::to("create_ownership_preview").json(body)).expect("a preview").body
}

fn apply(host: &FakeHost, preview: &Value) -> Result<SuccessResponse, Problem> {
    host.call(Request::to("apply_ownership_preview").with("preview_id", preview["id"].clone()))
}

/// Returns the only item of a preview with one finding.
fn judged(host: &FakeHost) -> Value {
    let items = preview(host)["snapshot"]["items"].clone();
    assert_eq!(items.as_array().map(Vec::len), Some(1));
    items[0].clone()
}

#[test]
fn a_preview_has_the_contract_s_fields_with_real_values() {
    let host = host();
    import(&host, "# mine\n*.rs @ada\n");
    let finding_id = finding(&host, 1, &["src/a.rs"], Some(BEA));
    let service = json!({ "repository_ids": [REPOSITORY], "owner_id": null, "group_id": null });
    host.put_document("catalog.services", &Uuid::from_u128(5).to_string(), service);
    let made = preview(&host);
    let item = json!({
        "assignee_id": USER, "collaboration_version": 3, "current_assignee_id": BEA,
        "due_at": START.plus_seconds(86_400), "finding_id": finding_id, "identities": ["@ada"],
        "paths": ["src/a.rs"], "reason": null, "rule_lines": [2],
        "service_ids": [Uuid::from_u128(5)], "severity": "high", "status": "ready",
        "title": format!("F{finding_id}"),
    });
    let snapshot = json!({
        "audit_id": AUDIT, "branch_ref": "main", "commit_sha": "0f1e", "items": [item],
        "next_cursor": null, "policy_version": 1, "repository_id": REPOSITORY,
        "source_path": ".github/CODEOWNERS", "source_sha256": format!("{:064x}", 17),
        "source_status": "available",
        "warnings": ["The audit has no path list, so rules without a match are not reported."],
    });
    assert_eq!(made["snapshot"], snapshot);
    assert_eq!((&made["applied_at"], &made["result"]), (&Value::Null, &Value::Null));
    assert_eq!(made.as_object().map(serde_json::Map::len), Some(6));

    let again = preview(&host);
    assert_eq!(again["preview_sha256"], made["preview_sha256"]);
    assert_ne!(again["id"], made["id"]);
    finding(&host, 2, &["x"], None);
    assert_ne!(preview(&host)["preview_sha256"], made["preview_sha256"]);
}

#[test]
fn names_stand_for_people_as_the_rules_say() {
    let cal = Uuid::from_u128(0x31);
    for (owners, current, status, assignee, reason) in [
        ("@ADA", None, "ready", Some(USER), None),
        ("BEA@example.org", None, "ready", Some(BEA), None),
        ("@acme/web", None, "ready", Some(BEA), None),
        ("@ada @bea", Some(BEA), "unchanged", Some(BEA), None),
        ("@acme/web", Some(USER), "unchanged", Some(USER), None),
        ("@nobody @ada", None, "ready", Some(USER), None),
        ("@acme/none", None, "needs_review", None, Some("no group has the identity @acme/none")),
        (
            "@nobody",
            Some(BEA),
            "needs_review",
            None,
            Some("neither a group nor a member is @nobody"),
        ),
        ("x@y.zz", None, "needs_review", None, Some("neither a group nor a member is x@y.zz")),
        ("@twins", None, "needs_review", None, Some("several members may be @twins")),
        ("@both", None, "needs_review", None, Some("several groups have the identity @both")),
        (
            "@empty",
            None,
            "needs_review",
            None,
            Some("the group G43, which is @empty, has no members"),
        ),
        ("", None, "needs_review", None, Some("the rule names no owners")),
        ("", Some(BEA), "unchanged", Some(BEA), Some("the rule names no owners")),
    ] {
        let host = host();
        host.put_member(cal, "twins@example.org", Role::Member);
        host.put_member(Uuid::from_u128(0x32), "twins@example.com", Role::Member);
        group(&host, 41, &["@ACME/web", "@acme/Web", "@both"], &[Uuid::from_u128(0x99), BEA, USER]);
        group(&host, 42, &["@both"], &[BEA]);
        group(&host, 43, &["@empty"], &[Uuid::from_u128(0x99)]);
        import(&host, &format!("* {owners}\n"));
        finding(&host, 1, &["a"], current);
        let item = judged(&host);
        let found = (&item["status"], &item["assignee_id"], &item["reason"]);
        assert_eq!(found, (&json!(status), &json!(assignee), &json!(reason)), "{owners}");
    }
}

#[test]
fn the_owner_of_the_group_s_service_goes_before_its_members() {
    let host = host();
    let team = group(&host, 41, &["@acme/web"], &[BEA]);
    let service = json!({ "repository_ids": [REPOSITORY], "owner_id": USER, "group_id": team });
    host.put_document("catalog.services", &Uuid::from_u128(5).to_string(), service);
    import(&host, "* @acme/web\n");
    finding(&host, 1, &["a"], None);
    assert_eq!(judged(&host)["assignee_id"], json!(USER));
}

#[test]
fn what_nothing_is_said_of_needs_review() {
    let reason = |file: Option<&str>, paths: &[&str]| {
        let host = host();
        if let Some(file) = file {
            import(&host, file);
        }
        finding(&host, 1, paths, None);
        judged(&host)["reason"].clone()
    };
    assert_eq!(reason(None, &["a"]), "there are no ownership rules");
    assert_eq!(reason(Some("approvers:\n- a\n"), &["a"]), "there are no ownership rules");
    assert_eq!(reason(Some("/b @ada\n"), &["a"]), "no rule matches");
    assert_eq!(reason(Some("* @ada\n"), &[]), "the finding names no path");
    // A rule that matches one of the paths of the finding is enough.
    assert_eq!(reason(Some("/b @ada\n"), &["a", "/b"]), Value::Null);
}

#[test]
fn gitlab_s_roles_are_nobody() {
    let host = host();
    start_audit(&host, &[input(&host, "code_owners", ".gitlab/CODEOWNERS", "* @@maintainer\n")]);
    run_jobs(&host);
    finding(&host, 1, &["a"], None);
    assert_eq!(judged(&host)["reason"], "@@maintainer is a role, which only GitLab can resolve");
}

#[test]
fn applying_assigns_once_and_is_recorded() {
    let host = host();
    import(&host, "*.rs @ada\n*.md @nobody\n");
    let ready = finding(&host, 1, &["a.rs"], None);
    finding(&host, 2, &["b.rs"], Some(USER));
    finding(&host, 3, &["c.md"], None);
    let made = preview(&host);
    host.advance(60);
    let applied = apply(&host, &made).expect("applied");
    assert_eq!((applied.status, applied.version), (200, Some(2)));
    let result =
        json!({ "applied": 1, "applied_at": host.now(), "needs_review": 1, "unchanged": 1 });
    assert_eq!(applied.body["result"], result);
    assert_eq!(applied.body["applied_at"], json!(host.now()));
    let status = |n: usize| applied.body["snapshot"]["items"][n]["status"].clone();
    assert_eq!([status(0), status(1), status(2)], ["applied", "needs_review", "unchanged"]);
    assert_eq!(applied.body["preview_sha256"], made["preview_sha256"]);
    let event = host.events().pop().expect("an event");
    assert_eq!(event.name, "ownership.applied");
    let expected = json!([{ "finding_id": ready, "assignee_id": USER }]);
    assert_eq!(event.data["assignments"], expected);
    let again = apply(&host, &made).expect_err("once");
    assert_eq!(again.kind, ProblemKind::Conflict);
    assert_eq!(again.code.as_deref(), Some("preview_applied"));
    let listed = host.call(Request::to("list_ownership_previews")).expect("a list").body;
    assert_eq!(listed[0], applied.body);
}

#[test]
fn nothing_is_assigned_when_findings_have_changed() {
    type Change = (&'static str, Value);
    let changes: [Change; 3] =
        [("version", json!(4)), ("owner_id", json!(BEA)), ("open", json!(false))];
    for (member, value) in changes {
        let host = host();
        import(&host, "* @ada\n");
        let id = finding(&host, 1, &["a"], None);
        let made = preview(&host);
        let mut changed = host.documents("control_room.findings")[0].clone();
        changed[member] = value;
        host.put_document("control_room.findings", &id.to_string(), changed);
        let refused = apply(&host, &made).expect_err("changed");
        assert_eq!(refused.code.as_deref(), Some("findings_changed"));
        assert!(refused.detail.contains(&id.to_string()), "{}", refused.detail);
        assert!(host.events().iter().all(|event| event.name != "ownership.applied"));
    }
}

#[test]
fn items_beyond_the_first_hundred_follow_in_the_list_of_items() {
    let host = host();
    import(&host, "*.rs @ada\n");
    for n in 1..=230 {
        finding(&host, n, &["a.rs"], (n % 2 == 0).then_some(BEA));
    }
    let made = preview(&host);
    let shown = made["snapshot"]["items"].as_array().expect("items").clone();
    assert_eq!(shown.len(), 100);
    assert!(shown.iter().all(|item| item["current_assignee_id"].is_null()), "unassigned first");
    let items = |request: Request| {
        let request = request.with("preview_id", made["id"].clone());
        host.call(request).map(|answer| answer.body)
    };
    let list = || Request::to("list_ownership_preview_items");
    let rest = list().with("after_id", made["snapshot"]["next_cursor"].clone());
    let rest = items(rest.with("limit", 200)).expect("a page");
    assert_eq!(rest["items"].as_array().map(Vec::len), Some(130));
    assert_eq!(rest["next_cursor"], Value::Null);
    let all = items(list().with("limit", 200)).expect("a page");
    assert_eq!(all["items"].as_array().expect("items")[..100], shown);
    let last = list().with("limit", 200).with("cursor", all["next_cursor"].clone());
    assert_eq!(
        items(last).expect("a page")["items"],
        json!(rest["items"].as_array().expect("items")[100..])
    );
    let unknown = items(list().with("after_id", json!(AUDIT))).expect_err("unknown");
    assert_eq!(unknown.violations[0].pointer, "after_id");
    assert_eq!(apply(&host, &made).expect("applied").body["result"]["applied"], 230);
}

#[test]
fn previews_are_listed_newest_first_and_before_one() {
    let host = host();
    let mut made = vec![preview(&host)];
    import(&host, "* @ada\n");
    for _ in 0..3 {
        host.advance(1);
        made.push(preview(&host));
    }
    made.reverse();
    let list = |request: Request| host.call(request).map(|answer| answer.body);
    let all = || Request::to("list_ownership_previews");
    assert_eq!(list(all()).expect("a list"), json!(made));
    assert_eq!(list(all().with("limit", 1)).expect("a list"), json!(made[..1]));
    let before = all().with("before_id", made[1]["id"].clone());
    assert_eq!(list(before.clone()).expect("a list"), json!(made[2..]));
    assert_eq!(list(before.with("audit_id", json!(AUDIT))).expect("a list"), json!(made[2..3]));
    let unknown = list(all().with("before_id", json!(AUDIT))).expect_err("unknown");
    assert_eq!(unknown.violations[0].pointer, "before_id");
    let one = Request::to("get_ownership_preview").with("preview_id", made[0]["id"].clone());
    assert_eq!(list(one).expect("a preview"), made[0]);
}

#[test]
fn a_preview_is_of_a_repository_and_an_audit_of_it() {
    let host = host();
    import(&host, "* @ada\n");
    let create = |body: Value| host.call(Request::to("create_ownership_preview").json(body));
    let pointer = |body: Value| create(body).expect_err("refused").violations[0].pointer.clone();
    assert_eq!(pointer(json!({ "repository_id": AUDIT })), "/repository_id");
    let strange = json!({ "repository_id": REPOSITORY, "audit_id": REPOSITORY });
    assert_eq!(pointer(strange), "/audit_id");
    let made = create(json!({ "repository_id": REPOSITORY, "audit_id": AUDIT })).expect("made");
    assert_eq!((made.status, &made.body["snapshot"]["audit_id"]), (201, &json!(AUDIT)));
}
