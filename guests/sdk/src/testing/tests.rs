//! The fake host refuses what a service refuses, and panics where a service
//! reports a fault.

use serde_json::json;

use super::{FakeHost, Request};
use crate::prelude::*;

#[derive(Serialize, Deserialize, JsonSchema)]
struct NewThing {
    #[schemars(length(min = 1, max = 5))]
    name: String,
}

document!(NewThing, "things");

#[derive(Serialize, JsonSchema)]
struct Thing {
    /// Its schema is another than its type.
    #[schemars(with = "u32")]
    number: serde_json::Value,
}

#[derive(Deserialize, JsonSchema)]
struct Reading {
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 20_000))]
    times: u32,
    #[serde(default)]
    write: bool,
}

fn ten() -> u32 {
    10
}

fn create(_: &Ctx, Body(new): Body<NewThing>) -> Result<Thing> {
    match new.name.as_str() {
        "full" => Err(Problem::conflict("things_full", "There is no room.")),
        "empty" => Err(Problem::conflict("things_empty", "There is nothing.")),
        "three" => Ok(Thing { number: json!("three") }),
        _ => Ok(Thing { number: json!(3) }),
    }
}

fn read(ctx: &Ctx, Params(reading): Params<Reading>) -> Result<u32> {
    for _ in 0..reading.times {
        ctx.documents::<NewThing>().find("one")?;
    }
    if reading.write {
        ctx.documents().create("one", &NewThing { name: "one".to_owned() })?;
    }
    Ok(reading.times)
}

fn read_many(ctx: &Ctx, Params(reading): Params<Reading>) -> Result<usize> {
    Ok(ctx.documents::<NewThing>().get_many(0..reading.times)?.len())
}

/// Stores a thing with an id and a name of these lengths.
#[derive(Deserialize, JsonSchema)]
struct Lengths {
    id: usize,
    name: usize,
}

fn store(ctx: &Ctx, Body(lengths): Body<Lengths>) -> Result<u32> {
    let thing = NewThing { name: "é".repeat(lengths.name / 2) };
    ctx.documents().create("i".repeat(lengths.id), &thing)?;
    Ok(1)
}

fn host() -> FakeHost {
    const THINGS: &str = "/v1/workspaces/{workspace_id}/things";
    FakeHost::new(
        Area::new("things", "1.0.0")
            .collection(Collection::of::<NewThing>().text("name").index(&["name"]))
            .route(post("create", THINGS).problems(&["things_full"]).handler(create))
            .route(get("read", THINGS).handler(read))
            .route(get("read_many", "/v1/workspaces/{workspace_id}/things/many").handler(read_many))
            .route(post("store", THINGS).handler(store)),
    )
}

fn named(name: &str) -> Request {
    Request::to("create").json(json!({ "name": name }))
}

/// Returns the pointers that a refusal names.
fn pointers(request: Request) -> Vec<String> {
    let refused = host().call(request).expect_err("it is refused");
    refused.violations.into_iter().map(|violation| violation.pointer).collect()
}

#[test]
fn a_role_below_the_routes_is_refused() {
    let refused = host().call(named("one").role(Role::Viewer)).expect_err("no member");
    assert_eq!(refused.kind, Problem::permission_denied("").kind);
    assert!(host().call(named("one").role(Role::Member)).is_ok());
    assert!(host().call(Request::to("read").role(Role::Viewer)).is_ok());
}

#[test]
fn a_body_against_its_schema_is_refused_by_pointer() {
    assert_eq!(pointers(named("too long")), ["/name"]);
    assert_eq!(pointers(Request::to("create").json(json!({ "title": "a" }))), ["/title", "/name"]);
    assert_eq!(pointers(Request::to("create")), [""]);
}

#[test]
fn parameters_are_checked_and_have_their_defaults() {
    assert_eq!(host().call(Request::to("read")).expect("a number").body, json!(10));
    assert_eq!(pointers(Request::to("read").with("times", 0)), ["times"]);
    assert_eq!(pointers(Request::to("read").with("time", 1)), ["time"]);
}

#[test]
fn more_ids_than_a_call_may_read_are_refused() {
    let read = |times| Request::to("read_many").with("times", times);
    assert_eq!(host().call(read(10_000)).expect("none exists").body, json!(0));
    assert_eq!(pointers(read(10_001)), [""]);
}

#[test]
#[should_panic = "create: its reply breaks the response schema: /number"]
fn a_reply_against_its_schema_is_a_fault() {
    let _ = host().call(named("three"));
}

#[test]
#[should_panic = "the route does not declare the problem code \"things_empty\""]
fn a_problem_code_that_is_not_declared_is_a_fault() {
    assert!(host().call(named("full")).is_err(), "this one is declared");
    let _ = host().call(named("empty"));
}

#[test]
#[should_panic = "the route is read-only; set `writes` to true in the manifest"]
fn a_write_in_a_read_is_a_fault() {
    let _ = host().call(Request::to("read").with("write", true));
}

#[test]
#[should_panic = "more than 50 host calls (runtime.max_host_calls;"]
fn too_many_host_calls_are_a_fault() {
    let host = host();
    host.set_max_host_calls(50);
    assert!(host.call(Request::to("read").with("times", 50)).is_ok());
    assert!(host.call(Request::to("read").with("times", 50)).is_ok(), "each call has its own");
    let _ = host.call(Request::to("read").with("times", 51));
}

fn stored(id: usize, name: usize) -> Request {
    Request::to("store").json(json!({ "id": id, "name": name }))
}

#[test]
#[should_panic = "the indexed fields name hold 1602 bytes; an index takes 1600"]
fn a_text_that_is_too_long_for_its_index_is_a_fault() {
    assert!(host().call(stored(1, 1600)).is_ok());
    let _ = host().call(stored(1, 1602));
}

#[test]
#[should_panic = "is not a valid id; use 1 to 200 characters"]
fn an_id_that_is_too_long_is_a_fault() {
    assert!(host().call(stored(200, 2)).is_ok());
    let _ = host().call(stored(201, 2));
}
