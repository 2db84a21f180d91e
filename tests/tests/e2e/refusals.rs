//! The seven refusals of the contract, caused on each of its 22 operations. A refusal that cannot
//! be caused has a reason; a cell with neither fails the test. Refusals of access are caused on all
//! operations of a workspace.

use std::collections::BTreeMap;

use assurance_tests::client::send;
use assurance_tests::contract::Contract;
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends};
use futures::future::join_all;
use reqwest::Method;
use serde_json::Value;
use uuid::Uuid;

use crate::requests::{AREAS, RepeatableRequest, Requests};

const STATUSES: [u16; 7] = [400, 401, 403, 404, 409, 422, 429];

/// Reason why some refusals cannot be caused on the two operations about the caller.
const ABOUT_THE_CALLER: &str = "it names nothing but the caller";
const ONLY_READS: &str = "it changes nothing that could conflict";
const EVERYBODY_MAY: &str = "every member may; a stranger is told 404";

/// Content of a cell: an operation and a status.
#[derive(Debug)]
enum Cell {
    Provoked,
    NotPossible(&'static str),
}

/// Users and requests that cause the refusals.
struct World {
    host: TestHost,
    ada: Client,
    vera: Client,
    stranger: Client,
    requests: Requests,
}

impl World {
    async fn new(backend: Backend) -> Self {
        let builder = Builder::new(backend).areas(AREAS).set("egress.allow_loopback", true);
        let (mut host, ada) = builder.start_with_owner().await;
        let vera = host.member("vera", &ada.workspace, "viewer");
        let stranger = host.create_owner("eve", "eves-own").in_workspace(&ada.workspace);
        let requests = Requests::prepare(&host, &ada).await;
        Self { host, ada, vera, stranger, requests }
    }
}

fn number(operation: &Value) -> u64 {
    operation["n"].as_u64().expect("a number")
}

fn reads(operation: &Value) -> bool {
    operation["method"] == "GET"
}

fn path(operation: &Value) -> String {
    operation["path"].as_str().expect("a path").replace("{workspace_id}", "{ws}")
}

async fn sent(client: &Client, sent: &RepeatableRequest, query: &str) -> Answer {
    send(sent.request(client, query)).await
}

/// Sends a request to an operation that must be refused with this status.
async fn provoke(world: &World, operation: &Value, status: u16) -> Cell {
    let (n, request) = (number(operation), world.requests.of(operation));
    let about_the_caller = n <= 2;
    let answer = match status {
        400 => sent(&world.ada, &request, "?broken=%zz").await,
        401 => sent(&Client { session: None, ..world.ada.clone() }, &request, "").await,
        403 if n == 21 => sent(&world.vera, &request, "").await,
        403 if reads(operation) => return Cell::NotPossible(EVERYBODY_MAY),
        403 => sent(&world.ada.without_csrf(), &request, "").await,
        404 if about_the_caller => return Cell::NotPossible(ABOUT_THE_CALLER),
        404 => sent(&world.stranger, &request, "").await,
        409 if reads(operation) => return Cell::NotPossible(ONLY_READS),
        409 => conflict(world, n, &request).await,
        422 => sent(&world.ada, &request, "?unknown=1").await,
        _ => return Cell::NotPossible("provoked on a host with tight rates"),
    };
    assert_eq!(answer.status, status, "operation {n}: {}", answer.text());
    let code = answer.json()["code"].as_str().expect("a code").to_owned();
    answer.problem(status, &code);
    Cell::Provoked
}

/// Causes a conflict: with a request that was done before, otherwise with many concurrent requests
/// under one idempotency key.
async fn conflict(world: &World, n: u64, request: &RepeatableRequest) -> Answer {
    if let Some(again) = world.requests.conflicting(n, request) {
        sent(&world.ada, request, "").await.expect(201);
        return sent(&world.ada, &again, "").await;
    }
    for round in 0..100 {
        let once = request.under_key(&format!("crowded-{n}-{round}"));
        for answer in join_all((0..8).map(|_| sent(&world.ada, &once, ""))).await {
            if answer.json()["code"] == "idempotency_in_progress" {
                assert_eq!(answer.status, 409);
                assert!(answer.header("retry-after").is_some());
                return answer;
            }
        }
    }
    panic!("operation {n}: no two calls met under one key");
}

both_backends! {
    async fn every_operation_refuses_in_seven_ways(backend) {
        let world = World::new(backend).await;
        let contract = Contract::read();
        assert_eq!(contract.operations().len(), 22);
        let mut table: BTreeMap<(u64, u16), Cell> = BTreeMap::new();
        for operation in contract.operations() {
            for status in STATUSES {
                let cell = provoke(&world, operation, status).await;
                table.insert((number(operation), status), cell);
            }
        }
        for operation in contract.operations() {
            for status in STATUSES {
                match table.get(&(number(operation), status)) {
                    Some(Cell::Provoked) => {}
                    Some(Cell::NotPossible(why)) => assert!(!why.is_empty()),
                    None => panic!("{} {status}: the cell is empty", path(operation)),
                }
            }
        }
        drop(world.host);
    }
}

#[tokio::test]
async fn every_operation_is_limited_in_its_rate() {
    let world = World::new(Backend::Sqlite).await;
    let World { mut host, ada, requests, .. } = world;
    host.restart(&[
        ("rates.enabled", true.into()),
        ("rates.session_burst", 20.into()),
        ("rates.session_per_minute", 1.into()),
    ])
    .await;
    for operation in Contract::read().operations() {
        let request = requests.of(operation);
        let client = host.member(&format!("mia{}", number(operation)), &ada.workspace, "admin");
        let mut answer = sent(&client, &request, "").await;
        for _ in 0..60 {
            if answer.status == 429 {
                break;
            }
            answer = sent(&client, &request, "").await;
        }
        answer.problem(429, "rate_limited");
        assert!(answer.header("retry-after").is_some(), "{}", path(operation));
    }
}

/// Callers of operations of one workspace.
struct Callers {
    nobody: Client,
    stranger: Client,
    /// Members with their roles, the lowest first.
    members: [(&'static str, Client); 3],
}

impl Callers {
    fn new(host: &mut TestHost, workspace: &str) -> Self {
        Self {
            nobody: host.nobody().in_workspace(workspace),
            stranger: host.create_owner("eve", "eves-own").in_workspace(workspace),
            members: ["viewer", "member", "admin"]
                .map(|role| (role, host.member(role, workspace, role))),
        }
    }

    /// Sends requests without a body, because access is checked before the body is read.
    async fn check(&self, method: &Method, path: &str, operation: &Value) {
        let path = with_unknown_ids(path);
        let call = async |client: &Client| send(client.request(method.clone(), &path)).await;
        call(&self.nobody).await.problem(401, "unauthenticated");
        call(&self.stranger).await.problem(404, "not_found");
        let least = &operation["x-least-role"];
        let at = self.members.iter().position(|(role, _)| least == role).expect("a role");
        let (_, allowed) = &self.members[at];
        if *method != Method::GET {
            call(&allowed.without_csrf()).await.problem(403, "csrf_failed");
        }
        if let Some(below) = at.checked_sub(1) {
            let (_, lower) = &self.members[below];
            call(lower).await.problem(403, "permission_denied");
        }
        let answer = call(allowed).await;
        let id = operation["operationId"].as_str().expect("an id");
        if id.starts_with("get_") && path.contains(&Uuid::nil().to_string()) {
            answer.problem(404, "not_found");
        }
        // A viewer may remove only itself.
        assert!(answer.status != 403 || id == "remove_member", "{id}: {}", answer.text());
    }
}

/// Returns the path with the nil UUID for each parameter except the workspace.
fn with_unknown_ids(path: &str) -> String {
    let filled = |part: &str| match part {
        "{workspace_id}" => "{ws}".to_owned(),
        parameter if parameter.starts_with('{') => Uuid::nil().to_string(),
        literal => literal.to_owned(),
    };
    path.split('/').map(filled).collect::<Vec<_>>().join("/")
}

both_backends! {
    async fn a_role_too_low_is_refused(backend) {
        let mut world = World::new(backend).await;
        let mia = world.host.member("mia", &world.ada.workspace, "member");
        for operation in Contract::read().operations() {
            let (n, request) = (number(operation), world.requests.of(operation));
            let (viewer_may, member_may) = match n {
                5 | 12 | 13 | 14 | 21 => (false, false),
                3 | 7 | 8 | 9 | 15 | 18 => (false, true),
                _ => (true, true),
            };
            for (client, may) in [(&world.vera, viewer_may), (&mia, member_may)] {
                let answer = sent(client, &request, "").await;
                if may {
                    assert!(answer.status < 400 || answer.status == 409, "{}", answer.text());
                } else {
                    answer.problem(403, "permission_denied");
                }
            }
        }
    }

    async fn every_operation_of_a_workspace_checks_its_caller(backend) {
        let (mut host, ada) = Builder::new(backend).areas(AREAS).start_with_owner().await;
        let callers = Callers::new(&mut host, &ada.workspace);
        let document = host.nobody().get("/openapi.json").await.expect(200);
        let paths = document["paths"].as_object().expect("paths");
        let mut checked = 0;
        for (path, item) in paths.iter().filter(|(path, _)| path.contains("{workspace_id}")) {
            for (method, operation) in item.as_object().expect("an item") {
                let method: Method = method.to_uppercase().parse().expect("a method");
                callers.check(&method, path, operation).await;
                checked += 1;
            }
        }
        assert!(checked > 130, "{checked} operations");
    }
}
