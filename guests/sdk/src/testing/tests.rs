//! The fake host refuses what a service refuses, and panics where a service
//! reports a fault.

use serde_json::json;

use super::store::Documents;
use super::{FakeHost, Request, START};
use crate::prelude::*;
use crate::wit::assurance::area::documents::{Error, Write};
use crate::wit::assurance::area::manifest;
use crate::{Host, JobOptions, LinkHolder};

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
            .collection(Collection::of::<NewThing>().index(&["name"]))
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
    assert!(host().call(Request::to("read").with("times", "")).is_ok());
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

/// Finds the number of things with a name that contains `q`.
#[derive(Deserialize, JsonSchema)]
struct Search {
    q: Option<String>,
}

fn search(ctx: &Ctx, Params(Search { q }): Params<Search>) -> Result<u64> {
    Ok(ctx.documents::<NewThing>().query().contains_if(&["name"], q.as_deref()).count()?)
}

#[derive(Serialize, Deserialize)]
struct Again {
    signs: bool,
}

job!(Again, "again");

fn again(ctx: &JobCtx, job: Again) -> JobResult<Again> {
    if job.signs {
        let _ = ctx.sign_link("shared", &json!({}), ctx.now());
    }
    ctx.enqueue_with(&job, only_one());
    Ok(Outcome::Done)
}

fn begin(ctx: &Ctx, Body(job): Body<Flag>) -> Result<NoContent> {
    ctx.enqueue_with(&Again { signs: job.signs }, only_one());
    Ok(NoContent)
}

fn only_one() -> JobOptions {
    JobOptions { dedupe_key: Some("one".to_owned()), ..JobOptions::default() }
}

fn shared(_: &Ctx) -> Result<u32> {
    Ok(1)
}

#[derive(Deserialize, JsonSchema)]
struct Flag {
    signs: bool,
}

fn working_host() -> FakeHost {
    FakeHost::new(
        Area::new("things", "1.0.0")
            .uses(&[Capability::Links])
            .collection(Collection::of::<NewThing>().fields(&["name"]))
            .job(Lane::Maintenance, 1, 1_000, again)
            .route(get("search", "/v1/workspaces/{workspace_id}/things").handler(search))
            .route(post("begin", "/v1/workspaces/{workspace_id}/begin").handler(begin))
            .route(
                get("shared", "/v1/shared")
                    .signed_link("token", LinkHolder::Bearer)
                    .handler(shared),
            ),
    )
}

#[test]
fn a_search_text_that_no_service_takes_is_the_clients_mistake() {
    let search = |length| Request::to("search").with("q", "x".repeat(length));
    assert!(working_host().call(search(1_000)).is_ok());
    let refused = working_host().call(search(1_001)).expect_err("too long");
    assert_eq!(refused.kind, Problem::validation("", "").kind);
}

#[test]
fn the_key_of_a_running_job_is_taken() {
    let host = working_host();
    host.call(Request::to("begin").json(json!({ "signs": false }))).expect("a job");
    assert_eq!(host.run_jobs().len(), 1);
    assert!(host.jobs().is_empty());
    host.call(Request::to("begin").json(json!({ "signs": false }))).expect("a job");
    assert_eq!(host.jobs().len(), 1, "the key is free when the job has ended");
}

#[test]
#[should_panic = "a link for shared needs a session"]
fn a_job_has_no_session_to_sign_a_link_with() {
    let host = working_host();
    host.call(Request::to("begin").json(json!({ "signs": true }))).expect("a job");
    host.run_jobs();
}

#[test]
fn one_read_of_a_blob_has_at_most_8_mib() {
    let host = host();
    host.put_blob("large", &vec![0; 9 << 20]);
    assert_eq!(host.blobs_read("large", 0, 10 << 20).map(|read| read.len()), Ok(8 << 20));
    assert_eq!(host.blobs_read("large", 8 << 20, 10 << 20).map(|read| read.len()), Ok(1 << 20));
}

/// Returns the documents `a`, `b` and `c` with the unique names `1`, `2` and `3`.
fn unique_things() -> (Documents, manifest::Collection) {
    let mut documents = Documents::default();
    let declared = Collection::of::<NewThing>().unique(&["name"]).manifest();
    let all = [created("a", "1"), created("b", "2"), created("c", "3")];
    assert_eq!(documents.apply(&declared, &all, START), Ok(vec![1, 1, 1]));
    (documents, declared)
}

fn created(id: &str, name: &str) -> Write {
    Write::Create((id.to_owned(), json!({ "name": name }).to_string()))
}

fn renamed(id: &str, name: &str) -> Write {
    Write::Replace((id.to_owned(), None, json!({ "name": name }).to_string()))
}

fn deleted(id: &str) -> Write {
    Write::Delete((id.to_owned(), None))
}

#[test]
fn an_apply_is_all_or_none() {
    let (mut documents, declared) = unique_things();
    let before = documents.all("things");
    let writes = [deleted("b"), renamed("a", "9"), created("d", "4"), deleted("none")];
    assert_eq!(documents.apply(&declared, &writes, START), Err(Error::NotFound));
    assert_eq!(documents.all("things"), before);
    let twice = [created("d", "4"), created("e", "4")];
    let conflict = Err(Error::UniqueConflict(vec!["name".to_owned()]));
    assert_eq!(documents.apply(&declared, &twice, START), conflict);
    assert_eq!(documents.all("things"), before);
    // It was not deleted, so its version is not continued.
    assert_eq!(documents.apply(&declared, &[created("d", "4")], START), Ok(vec![1]));
}

#[test]
fn unique_values_of_an_apply_are_checked_in_the_order_of_a_service() {
    let check = |writes: [Write; 2]| {
        let (mut documents, declared) = unique_things();
        documents.apply(&declared, &writes, START).is_ok()
    };
    assert!(check([renamed("a", "9"), renamed("b", "1")]), "given up before");
    assert!(!check([renamed("c", "9"), renamed("b", "3")]), "given up after it");
    assert!(check([created("z", "3"), deleted("c")]), "deletions come first");
    assert!(check([created("d", "2"), renamed("b", "9")]), "creations come last");
}

/// Gives the name of the thing `a` to another one, then deletes `a`.
fn rename(ctx: &Ctx, Body(queries): Body<bool>) -> Result<NoContent> {
    let old = ctx.documents::<NewThing>().get("a")?;
    ctx.documents().create("b", &old.value)?;
    if queries {
        ctx.documents::<NewThing>().query().count()?;
    }
    ctx.documents().delete(&old)?;
    Ok(NoContent)
}

#[test]
fn a_unique_value_may_be_given_up_after_it_is_taken() {
    let things = Collection::of::<NewThing>().unique(&["name"]);
    let route = post("rename", "/v1/workspaces/{workspace_id}/rename").handler(rename);
    let host = FakeHost::new(Area::new("things", "1.0.0").collection(things).route(route));
    host.put_document("things", "a", json!({ "name": "1" }));
    let rename = |queries: bool| host.call(Request::to("rename").json(json!(queries)));
    assert!(rename(true).is_err(), "the query finds the name twice");
    assert!(rename(false).is_ok(), "the commit finds it once");
    assert_eq!(host.documents("things"), [json!({ "name": "1" })]);
}

#[test]
fn a_collection_that_another_area_does_not_share_is_refused() {
    let (host, things) = (host(), Collection::of::<NewThing>);
    let read = || host.documents_get("others.things", "one");
    host.put_area(&Area::new("others", "1.0.0").collection(things().readable_by(&["things"])));
    assert_eq!(read(), Ok(None));
    host.put_area(&Area::new("others", "1.0.0").collection(things()));
    assert!(matches!(read(), Err(Error::Misuse(_))));
}

#[test]
#[should_panic = "begin: if_match needs a handler that returns a body"]
fn if_match_without_a_body_names_the_operation() {
    let route = post("begin", "/v1/begin").if_match().handler(begin);
    let _ = Area::new("things", "1.0.0").route(route).manifest();
}

#[test]
#[should_panic = "list: ids is neither text"]
fn a_parameter_of_no_kind_names_the_operation() {
    let list: fn(&Ctx, Path<Vec<u32>>) -> Result<usize> = |_, Path(ids)| Ok(ids.len());
    let _ = Area::new("things", "1.0.0").route(get("list", "/v1/{ids}").handler(list)).manifest();
}
