//! Native tests of an area: a host in memory that holds the area to its own
//! manifest.
//!
//! [`FakeHost::call`] returns what a client would receive: a refusal for a role,
//! a parameter or a body that the manifest does not allow. It panics where a
//! service would report a fault of the area: a reply that breaks its schema, a
//! problem code that is not declared, a write in a route that only reads, more
//! host calls than one call may make.
//!
//! ```
//! # use area_sdk::prelude::*;
//! use area_sdk::testing::{FakeHost, Request};
//!
//! # fn hello(_: &Ctx) -> Result<String> { Ok("hello".into()) }
//! # fn area() -> Area {
//! #     Area::new("hello", "1.0.0")
//! #         .route(get("hello", "/v1/workspaces/{workspace_id}/hello").handler(hello))
//! # }
//! let host = FakeHost::new(area());
//! let answer = host.call(Request::to("hello")).expect("an answer");
//! assert_eq!((answer.status, answer.body), (200, "hello".into()));
//! ```

mod contract;
mod host;
mod queue;
mod request;
mod store;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::area::Area;
use crate::blobs::BlobInfo;
use crate::host::Handle;
use crate::mail::{MailError, Message};
use crate::membership::Account;
use crate::problem::Problem;
use crate::queue::Job;
use crate::time::Timestamp;
use crate::wit::assurance::area::directory::Person;
use crate::wit::assurance::area::malware::{Error as ScanError, Verdict};
use crate::wit::assurance::area::manifest::Manifest;
use crate::wit::assurance::area::types::{Actor, Call, ReceivedBlob, Role};
use crate::wit::{self, JobError, Outcome};

pub use crate::wit::assurance::area::egress::{Error as EgressError, Header, Incoming, Outgoing};
use contract::CheckedRoute;
pub use host::hmac_sha256;
use queue::Queue;
pub use request::Request;
use store::Documents;

/// The moment at which a fake host's clock stands at first:
/// 2026-09-21T14:13:20Z.
pub const START: Timestamp = Timestamp(1_790_000_000_000_000);

/// The user that calls where a test names none.
pub const USER: Uuid = Uuid::from_u128(0x0196_0000_0000_7000_8000_0000_0000_0001);

/// The workspace of every call.
pub const WORKSPACE: Uuid = Uuid::from_u128(0x0196_0000_0000_7000_8000_0000_0000_0002);

/// Documents that one call may read and write, as a service allows it where its
/// operator says nothing else.
const MOST_DOCUMENTS: usize = 10_000;

/// Host calls of one call, as a service allows them where its operator says
/// nothing else.
const MAX_HOST_CALLS: u32 = 20_000;

type MailServer = Box<dyn FnMut(&Message) -> Result<(), MailError>>;
type Network = Box<dyn FnMut(&Outgoing) -> Result<Incoming, EgressError>>;
type Scanner = Box<dyn FnMut(&[u8]) -> Result<Verdict, ScanError>>;

/// A host in memory. What a call writes is kept if it succeeds, and dropped if
/// it does not.
#[derive(Clone)]
pub struct FakeHost(Rc<Inner>);

struct Inner {
    area: Area,
    manifest: Manifest,
    routes: Vec<CheckedRoute>,
    now: Cell<Timestamp>,
    calls: Cell<u64>,
    /// Documents that the call has read and written.
    used: Cell<usize>,
    /// Host functions that the call has called.
    host_calls: Cell<u32>,
    max_host_calls: Cell<u32>,
    in_job: Cell<bool>,
    /// Whether the call may write.
    writes: Cell<bool>,
    state: RefCell<State>,
    network: RefCell<Network>,
    scanner: RefCell<Scanner>,
    settings: RefCell<BTreeMap<String, String>>,
    /// By area and name.
    shared_blobs: RefCell<BTreeMap<(String, String), Vec<u8>>>,
    sent: RefCell<Vec<Outgoing>>,
    mail_server: RefCell<MailServer>,
    mail: RefCell<Vec<Message>>,
    log: RefCell<Vec<String>>,
}

/// What commits or not.
#[derive(Clone, Default)]
struct State {
    documents: Documents,
    events: Vec<Rc<PublishedEvent>>,
    jobs: Vec<EnqueuedJob>,
    secrets: BTreeMap<String, Vec<u8>>,
    blobs: BTreeMap<String, Vec<u8>>,
    members: Vec<Person>,
    links: Vec<SignedLink>,
    accounts: Vec<Account>,
    queue: Queue,
}

/// An event that was published.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedEvent {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its data.
    pub data: Value,
}

/// A job that was put off.
#[derive(Clone, Debug, PartialEq)]
pub struct EnqueuedJob {
    /// Its id.
    pub id: Uuid,
    /// Its kind.
    pub kind: String,
    /// Its payload.
    pub payload: Value,
    /// Not before; nothing: at once.
    pub available_at: Option<Timestamp>,
    /// What it is about.
    pub resource: Option<Uuid>,
    /// At most one waits with it.
    pub dedupe_key: Option<String>,
}

/// A link that was signed.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedLink {
    /// The route it is for.
    pub operation: String,
    /// What its handler gets.
    pub claims: Value,
    /// From then on it is refused.
    pub expires_at: Timestamp,
    /// What the area was given.
    pub token: String,
}

/// A success.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The route's.
    pub status: u16,
    /// Null for a 204.
    pub body: Value,
    /// `ETag`.
    pub version: Option<u64>,
    /// An earlier result.
    pub replayed: bool,
}

impl std::fmt::Debug for FakeHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeHost").field("area", &self.0.area).finish_non_exhaustive()
    }
}

impl FakeHost {
    /// A host with nothing in it that has loaded this area. The network is
    /// away, and there is no malware scanner.
    #[must_use]
    pub fn new(area: Area) -> Self {
        let manifest = area.manifest();
        Self(Rc::new(Inner {
            area,
            routes: manifest.routes.iter().cloned().map(CheckedRoute::new).collect(),
            manifest,
            now: Cell::new(START),
            calls: Cell::new(0),
            used: Cell::new(0),
            host_calls: Cell::new(0),
            max_host_calls: Cell::new(MAX_HOST_CALLS),
            in_job: Cell::new(false),
            writes: Cell::new(true),
            state: RefCell::default(),
            network: RefCell::new(Box::new(|_| Err(EgressError::Unresolved))),
            scanner: RefCell::new(Box::new(|_| Ok(Verdict::Skipped))),
            settings: RefCell::default(),
            shared_blobs: RefCell::default(),
            sent: RefCell::default(),
            mail_server: RefCell::new(Box::new(|_| Ok(()))),
            mail: RefCell::default(),
            log: RefCell::default(),
        }))
    }

    /// The area's manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    fn circumstances(&self) -> Call {
        let calls = self.0.calls.get() + 1;
        self.0.calls.set(calls);
        self.0.used.set(0);
        self.0.host_calls.set(0);
        Call { workspace: WORKSPACE.to_string(), now: self.now().0, seed: (calls, 1) }
    }

    /// Runs in a transaction.
    fn attempt<T, E>(&self, run: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let before = self.0.state.borrow().clone();
        let result = run();
        if result.is_err() {
            *self.0.state.borrow_mut() = before;
        }
        result
    }

    /// Makes a request.
    ///
    /// # Errors
    /// The refusal that a client receives: the host's, or the area's.
    ///
    /// # Panics
    /// If the area has no such operation, or if a service would report a fault
    /// of the area (see the [module](self)).
    #[track_caller]
    pub fn call(&self, request: Request) -> Result<Answer, Problem> {
        let mut routes = self.0.routes.iter();
        let contract = routes.find(|one| one.route.operation_id == request.operation);
        let Some(contract) = contract else { panic!("no operation {}", request.operation) };
        let mut request = wit::Request {
            call: self.circumstances(),
            actor: Actor { user: request.user.to_string(), role: request.role },
            operation: request.operation,
            parameters: request.parameters,
            body: request.body,
            idempotency_key: request.idempotency_key,
            if_match: request.if_match,
            base_url: "https://assurance.test".to_owned(),
            link: request.link.map(|claims| claims.to_string()),
        };
        contract.admit(&mut request)?;
        self.0.writes.set(contract.route.writes);
        let result = self.attempt(|| self.0.area.handle(Handle::new(self.clone()), request));
        self.0.writes.set(true);
        match &result {
            Ok(reply) => contract.check_reply(reply),
            Err(problem) => contract.check_problem(problem),
        }
        let reply = result?;
        let body = reply.body.as_deref().map(serde_json::from_str).transpose();
        Ok(Answer {
            status: contract.route.success_status,
            body: body.expect("a reply of JSON").unwrap_or_default(),
            version: reply.version,
            replayed: reply.replayed,
        })
    }

    /// Runs a job, or an event delivery of kind `event`.
    ///
    /// # Errors
    /// The job's failure.
    #[expect(clippy::needless_pass_by_value, reason = "called with json!")]
    pub fn run(&self, kind: &str, payload: Value, attempt: u32) -> Result<Outcome, JobError> {
        let job = wit::Job {
            call: self.circumstances(),
            id: Uuid::from_u128(u128::from(self.0.calls.get())).to_string(),
            kind: kind.to_owned(),
            payload: payload.to_string(),
            attempt,
            checkpoint: None,
        };
        self.0.in_job.set(true);
        let result = self.attempt(|| self.0.area.run(Handle::new(self.clone()), job));
        self.0.in_job.set(false);
        result
    }

    /// Delivers an event, under this id.
    ///
    /// # Errors
    /// The subscriber's failure.
    #[expect(clippy::needless_pass_by_value, reason = "called with json!")]
    pub fn deliver(&self, id: Uuid, name: &str, data: Value) -> Result<Outcome, JobError> {
        let occurred_at = self.now();
        let event = json!({ "id": id, "name": name, "data": data, "occurred_at": occurred_at });
        self.run("event", event, 1)
    }

    /// Allows as many host calls of one call as the operator would with
    /// `areas.limits.AREA.max_host_calls`.
    pub fn set_max_host_calls(&self, max: u32) {
        self.0.max_host_calls.set(max);
    }

    /// What the clock says.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.now.get()
    }

    /// Moves the clock on.
    pub fn advance(&self, seconds: i64) {
        self.0.now.set(self.now().plus_seconds(seconds));
    }

    /// The events published so far.
    #[must_use]
    pub fn events(&self) -> Vec<PublishedEvent> {
        self.0.state.borrow().events.iter().map(|event| (**event).clone()).collect()
    }

    /// The jobs put off so far.
    #[must_use]
    pub fn jobs(&self) -> Vec<EnqueuedJob> {
        self.0.state.borrow().jobs.clone()
    }

    /// Takes the jobs put off so far out of the queue.
    #[must_use]
    pub fn take_jobs(&self) -> Vec<EnqueuedJob> {
        std::mem::take(&mut self.0.state.borrow_mut().jobs)
    }

    /// The documents of a collection, by id.
    #[must_use]
    pub fn documents(&self, collection: &str) -> Vec<Value> {
        self.0.state.borrow().documents.all(collection)
    }

    /// Puts a document there, of another area's collection perhaps.
    #[expect(clippy::needless_pass_by_value, reason = "called with json!")]
    pub fn put_document(&self, collection: &str, id: &str, body: Value) {
        let now = self.now();
        self.0.state.borrow_mut().documents.put(collection, id, body.to_string(), now);
    }

    /// Removes all documents of a collection, as where a version without it
    /// wrote the rest.
    pub fn delete_documents(&self, collection: &str) {
        self.0.state.borrow_mut().documents.clear(collection);
    }

    /// Puts a blob of this area there.
    pub fn put_blob(&self, name: &str, content: &[u8]) -> ReceivedBlob {
        self.0.state.borrow_mut().blobs.insert(name.to_owned(), content.to_vec());
        let BlobInfo { size, sha256 } = host::info(content);
        ReceivedBlob { name: name.to_owned(), size, sha256, content_type: None }
    }

    /// The names of this area's blobs.
    #[must_use]
    pub fn blobs(&self) -> Vec<String> {
        self.0.state.borrow().blobs.keys().cloned().collect()
    }

    /// Puts a blob of another area there, which that area shares.
    pub fn put_shared_blob(&self, area: &str, name: &str, content: &[u8]) {
        let key = (area.to_owned(), name.to_owned());
        self.0.shared_blobs.borrow_mut().insert(key, content.to_vec());
    }

    /// Sets what the operator would have set.
    pub fn set(&self, key: &str, value: &str) {
        self.0.settings.borrow_mut().insert(key.to_owned(), value.to_owned());
    }

    /// Lets the malware scanner answer like this.
    pub fn scanner(&self, scan: impl FnMut(&[u8]) -> Result<Verdict, ScanError> + 'static) {
        *self.0.scanner.borrow_mut() = Box::new(scan);
    }

    /// The links signed so far.
    #[must_use]
    pub fn links(&self) -> Vec<SignedLink> {
        self.0.state.borrow().links.clone()
    }

    /// Makes somebody a member.
    pub fn put_member(&self, user: Uuid, email: &str, role: Role) {
        self.0.state.borrow_mut().members.push(Person {
            user: user.to_string(),
            email: email.to_owned(),
            display_name: email.to_owned(),
            role,
        });
    }

    /// Makes an account for somebody, who belongs to no workspace.
    pub fn put_account(&self, user: Uuid, email: &str) {
        self.0.state.borrow_mut().accounts.push(Account {
            user: user.to_string(),
            email: email.to_owned(),
            display_name: email.to_owned(),
        });
    }

    /// Everybody who is a member.
    #[must_use]
    pub fn members(&self) -> Vec<Person> {
        self.0.state.borrow().members.clone()
    }

    /// Puts a job of some area into the queue that the `queue` capability
    /// shows; its position is counted, not taken from here.
    pub fn put_job(&self, job: Job) {
        self.0.state.borrow_mut().queue.put(job);
    }

    /// Lets the mail server answer like this.
    pub fn mail_server(&self, answer: impl FnMut(&Message) -> Result<(), MailError> + 'static) {
        *self.0.mail_server.borrow_mut() = Box::new(answer);
    }

    /// The mail that was sent so far.
    #[must_use]
    pub fn mail(&self) -> Vec<Message> {
        self.0.mail.borrow().clone()
    }

    /// Lets the network answer like this.
    pub fn network(
        &self,
        answer: impl FnMut(&Outgoing) -> Result<Incoming, EgressError> + 'static,
    ) {
        *self.0.network.borrow_mut() = Box::new(answer);
    }

    /// What was sent out so far.
    #[must_use]
    pub fn sent(&self) -> Vec<Outgoing> {
        self.0.sent.borrow().clone()
    }

    /// Lines for the operator so far.
    #[must_use]
    pub fn log_lines(&self) -> Vec<String> {
        self.0.log.borrow().clone()
    }
}
