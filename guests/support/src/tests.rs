//! Tests of support cases through a fake host.

use area_sdk::testing::{FakeHost, Request, USER, member_names};
use area_sdk::{Role, Uuid};
use serde_json::{Value, json};

const SOMEBODY: Uuid = Uuid::from_u128(99);

fn open(host: &FakeHost, subject: &str) -> Value {
    let body = json!({ "subject": subject, "description": "Something is broken." });
    host.call(Request::to("create_support_case").json(body).key("12345678")).expect("a case").body
}

#[test]
fn a_case_has_exactly_the_fields_of_the_contract() {
    let host = FakeHost::new(crate::area());
    let case = open(&host, "Help");
    let expected = "category created_at description id latest_response_at notes priority status \
        subject updated_at";
    assert_eq!(member_names(&case), expected);
    assert_eq!(case["created_at"], "2026-09-21T14:13:20.000000Z");
    assert_eq!(case["status"], "open");
    assert_eq!(host.events()[0].name, "support_case.created");
    assert_eq!(host.events()[0].data["case_id"], case["id"]);
}

#[test]
fn everybody_sees_their_own_cases_newest_first() {
    let host = FakeHost::new(crate::area());
    let first = open(&host, "First");
    host.advance(1);
    let second = open(&host, "Second");
    let list = |user| host.call(Request::to("list_support_cases").by(user)).expect("a list").body;
    assert_eq!(list(USER), json!([second, first]));
    assert_eq!(list(SOMEBODY), json!([]));

    let show = |user, role| {
        let request = Request::to("get_support_case").with("case_id", first["id"].clone());
        host.call(request.by(user).role(role)).map(|answer| answer.body)
    };
    assert_eq!(show(USER, Role::Viewer).expect("one's own"), first);
    assert_eq!(show(SOMEBODY, Role::Admin).expect("an admin's"), first);
    assert_eq!(show(SOMEBODY, Role::Member).map_err(|problem| problem.kind), Err(not_found()));
}

#[test]
fn all_of_many_cases_are_listed_and_no_more_than_an_answer_holds() {
    let host = FakeHost::new(crate::area());
    let listed = || {
        let list = host.call(Request::to("list_support_cases")).expect("a list").body;
        list.as_array().map(Vec::len)
    };
    for number in 0..231 {
        host.advance(1);
        open(&host, &format!("Case {number}"));
    }
    assert_eq!(listed(), Some(231));
    for _ in 0..300 {
        host.advance(1);
        let body = json!({ "subject": "Long", "description": "x".repeat(20_000) });
        host.call(Request::to("create_support_case").json(body).key("12345678")).expect("a case");
    }
    assert_eq!(listed(), Some(205));
}

/// Stores a case of the default user with this number of notes of 20,000 characters each.
fn put_case(host: &FakeHost, number: u128, notes: usize, character: &str) {
    let note = json!({
        "id": USER, "author_id": USER, "body": character.repeat(20_000), "created_at": host.now(),
    });
    let case = json!({
        "author_id": USER, "subject": number.to_string(), "description": "d",
        "category": "general", "priority": "normal", "status": "open",
        "notes": vec![note; notes], "latest_response_at": null,
    });
    host.put_document("cases", &Uuid::from_u128(number).to_string(), case);
}

/// Returns the subjects of each page, and the size of the largest page in bytes.
fn pages(host: &FakeHost, limit: u32) -> (Vec<Vec<Value>>, usize) {
    let (mut pages, mut largest, mut cursor) = (Vec::new(), 0, Value::Null);
    loop {
        let request = Request::to("page_support_cases").with("limit", limit);
        let request =
            if cursor.is_null() { request } else { request.with("cursor", cursor.clone()) };
        let page = host.call(request).expect("a page").body;
        largest = largest.max(page.to_string().len());
        let items = page["items"].as_array().expect("items");
        pages.push(items.iter().map(|case| case["subject"].clone()).collect());
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            return (pages, largest);
        }
    }
}

#[test]
fn a_response_holds_no_more_than_its_size_however_long_the_cases_are() {
    let host = FakeHost::new(crate::area());
    for number in 0..50 {
        put_case(&host, number, 17, "x");
    }
    let list = host.call(Request::to("list_support_cases")).expect("a list").body;
    assert_eq!(list.as_array().map(Vec::len), Some(12));
    assert!(list.to_string().len() < (4 << 20) + 1_000);

    for limit in [50, 5] {
        let (pages, largest) = pages(&host, limit);
        assert!(largest < (4 << 20) + 1_000, "{largest}");
        let all: Vec<Value> = pages.concat();
        let newest_first: Vec<Value> = (0..50).rev().map(|n| json!(n.to_string())).collect();
        assert_eq!(all, newest_first, "{limit}");
        assert!(pages.iter().all(|page| page.len() <= limit as usize));
    }
}

#[test]
fn escapes_count_and_a_case_beyond_the_size_is_shown_alone() {
    let host = FakeHost::new(crate::area());
    for (number, notes) in [(0, 17), (1, 17), (2, 40), (3, 1)] {
        put_case(&host, number, notes, "\u{1}");
    }
    let (pages, _) = pages(&host, 50);
    assert_eq!(pages, [vec![json!("3")], vec![json!("2")], vec![json!("1"), json!("0")]]);
}

#[test]
fn a_case_takes_no_more_notes_than_a_response_holds() {
    let host = FakeHost::new(crate::area());
    put_case(&host, 1, 34, "\u{1}");
    let add = |body: &str| {
        let request = Request::to("add_support_note").with("case_id", json!(Uuid::from_u128(1)));
        host.call(request.json(json!({ "body": body }))).map(|answer| answer.status)
    };
    assert_eq!(add("x"), Ok(201));
    let refused = add(&"\u{1}".repeat(20_000)).expect_err("too large");
    assert_eq!(refused.code.as_deref(), Some("too_many_notes"));
}

fn not_found() -> area_sdk::wit::assurance::area::types::ProblemKind {
    area_sdk::Problem::not_found().kind
}

#[test]
fn a_note_of_somebody_else_is_a_response() {
    let host = FakeHost::new(crate::area());
    let case = open(&host, "Help");
    let note = |user| {
        host.advance(60);
        let request = Request::to("add_support_note").with("case_id", case["id"].clone());
        let request = request.json(json!({ "body": "More" })).by(user).role(Role::Admin);
        host.call(request).expect("a note")
    };
    let own = note(USER);
    assert_eq!((own.status, own.version), (201, Some(2)));
    assert_eq!(
        (&own.body["latest_response_at"], &own.body["status"]),
        (&Value::Null, &json!("open"))
    );
    let answered = note(SOMEBODY).body;
    assert_eq!(answered["latest_response_at"], answered["updated_at"]);
    assert_eq!(answered["status"], "answered");
    assert_eq!(answered["notes"][1]["author_id"], json!(SOMEBODY));
}

#[test]
fn closing_honours_if_match_and_changes_once() {
    let host = FakeHost::new(crate::area());
    let case = open(&host, "Help");
    let close = |version| {
        let request = Request::to("close_support_case").with("case_id", case["id"].clone());
        host.call(request.if_match(version))
    };
    assert!(close(7).is_err());
    assert_eq!(close(1).expect("closed").version, Some(2));
    assert_eq!(close(2).expect("closed still").version, Some(2));
    assert_eq!(host.events().len(), 2);

    let page = Request::to("page_support_cases").with("status", "closed").with("limit", 1);
    let page = host.call(page).expect("a page").body;
    assert_eq!(
        (page["items"].as_array().map(Vec::len), &page["next_cursor"]),
        (Some(1), &Value::Null)
    );
}

#[test]
fn the_manifest_says_what_the_handlers_do() {
    let manifest = crate::area().manifest();
    let route = |name: &str| {
        manifest.routes.iter().find(|route| route.operation_id == name).expect("a route").clone()
    };
    let create = route("create_support_case");
    assert_eq!(create.success_status, 201);
    let area_sdk::wit::assurance::area::manifest::BodyKind::Json(schema) = create.body else {
        panic!("takes JSON")
    };
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["subject"]["maxLength"], 200);
    let response: Value = serde_json::from_str(&create.response.expect("a schema")).expect("JSON");
    assert_eq!(response["required"].as_array().map(Vec::len), Some(10));
    assert_eq!(response["properties"]["latest_response_at"]["type"], json!(["string", "null"]));
}
