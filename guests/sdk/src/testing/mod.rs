//! Native tests of an area: an in-memory host that enforces the area's manifest.
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
mod jobs;
mod limits;
mod queue;
mod request;
mod store;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;
use uuid::Uuid;

use crate::area::Area;
use crate::blobs::BlobInfo;
use crate::host::HostFunctions;
use crate::mail::{MailError, Message};
use crate::membership::Account;
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::wit;
use crate::wit::assurance::area::directory::Person;
use crate::wit::assurance::area::malware::{Error as ScanError, Verdict};
use crate::wit::assurance::area::manifest::Manifest;
use crate::wit::assurance::area::types::{Actor, Call, ReceivedBlob, Role};

pub use crate::wit::assurance::area::egress::{Error as EgressError, Header, Incoming, Outgoing};
use contract::CheckedRoute;
pub use host::hmac_sha256;
use queue::QueueCapabilityState;
pub use request::Request;
use store::Documents;

/// Initial time of a fake host's clock: 2026-09-21T14:13:20Z.
pub const START: Timestamp = Timestamp(1_790_000_000_000_000);

/// User who sends test requests by default.
pub const USER: Uuid = Uuid::from_u128(0x0196_0000_0000_7000_8000_0000_0000_0001);

/// Workspace of every test call.
pub const WORKSPACE: Uuid = Uuid::from_u128(0x0196_0000_0000_7000_8000_0000_0000_0002);

/// Maximum number of documents that one call may read and write, the service's default.
const MOST_DOCUMENTS: usize = 10_000;

/// Maximum number of host calls of one call of the area, a service's default.
const MAX_HOST_CALLS: u32 = 20_000;

type MailServer = Box<dyn FnMut(&Message) -> Result<(), MailError>>;
type Network = Box<dyn FnMut(&Outgoing) -> Result<Incoming, EgressError>>;
type Scanner = Box<dyn FnMut(&[u8]) -> Result<Verdict, ScanError>>;

/// A host in memory. It keeps the effects of a call that succeeds, and discards those of a call
/// that fails.
#[derive(Clone)]
pub struct FakeHost(Rc<FakeHostState>);

struct FakeHostState {
    area: Area,
    manifest: Manifest,
    routes: Vec<CheckedRoute>,
    now: Cell<Timestamp>,
    calls: Cell<u64>,
    /// Number of documents that the current call has read and written.
    used: Cell<usize>,
    /// Number of host calls that the current call has made.
    host_calls: Cell<u32>,
    max_host_calls: Cell<u32>,
    in_job: Cell<bool>,
    /// Jobs that `run_jobs` has taken and not yet finished: one runs, the others wait.
    taken_jobs: RefCell<Vec<EnqueuedJob>>,
    /// Whether the current call may write.
    writes: Cell<bool>,
    state: RefCell<TransactionalState>,
    network: RefCell<Network>,
    scanner: RefCell<Scanner>,
    settings: RefCell<BTreeMap<String, String>>,
    /// Other areas that the test has declared.
    other_areas: RefCell<Vec<Manifest>>,
    /// Contents of other areas' blobs that are shared with this area, by area and name.
    shared_blobs: RefCell<BTreeMap<(String, String), Vec<u8>>>,
    sent: RefCell<Vec<Outgoing>>,
    mail_server: RefCell<MailServer>,
    mail: RefCell<Vec<Message>>,
    log: RefCell<Vec<String>>,
}

/// What a call changes: committed if the call succeeds, otherwise rolled back.
#[derive(Clone, Default)]
struct TransactionalState {
    documents: Documents,
    events: Vec<Rc<PublishedEvent>>,
    jobs: Vec<EnqueuedJob>,
    secrets: BTreeMap<String, Vec<u8>>,
    blobs: BTreeMap<String, Vec<u8>>,
    members: Vec<Person>,
    links: Vec<SignedLink>,
    accounts: Vec<Account>,
    queue: QueueCapabilityState,
}

/// An event that the area published.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedEvent {
    /// Id of the event.
    pub id: Uuid,
    /// Name of the event.
    pub name: String,
    /// Data of the event, a JSON object.
    pub data: Value,
}

/// A job that the area enqueued.
#[derive(Clone, Debug, PartialEq)]
pub struct EnqueuedJob {
    /// Id of the job.
    pub id: Uuid,
    /// Kind of the job.
    pub kind: String,
    /// Payload of the job.
    pub payload: Value,
    /// Earliest time of the first run; `None` means as soon as a worker is free.
    pub available_at: Option<Timestamp>,
    /// Id of the resource that the job is about.
    pub resource: Option<Uuid>,
    /// Deduplication key: at most one job with this kind and key waits or runs.
    pub dedupe_key: Option<String>,
}

/// A link that the area signed.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedLink {
    /// Operation that the link calls.
    pub operation: String,
    /// Claims that the operation's handler receives.
    pub claims: Value,
    /// Expiry of the link.
    pub expires_at: Timestamp,
    /// Token that the area received from the host.
    pub token: String,
}

/// The response to a successful test request.
#[derive(Clone, Debug, PartialEq)]
pub struct SuccessResponse {
    /// Success status that the route declares.
    pub status: u16,
    /// JSON body; null for a 204.
    pub body: Value,
    /// Resource version in `ETag`.
    pub version: Option<u64>,
    /// Whether the area returned the result of an earlier request with the same idempotency key.
    pub replayed: bool,
}

/// Returns the names of an object's members in alphabetical order, separated by spaces.
///
/// # Panics
/// If the value is not an object.
#[must_use]
pub fn member_names(object: &Value) -> String {
    let members = object.as_object().expect("an object");
    let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
    names.sort_unstable();
    names.join(" ")
}

impl std::fmt::Debug for FakeHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeHost").field("area", &self.0.area).finish_non_exhaustive()
    }
}

impl FakeHost {
    /// Creates an empty host for this area. Network requests fail with `Unresolved`, and the
    /// malware scanner returns `Skipped`.
    #[must_use]
    pub fn new(area: Area) -> Self {
        let manifest = area.manifest();
        Self(Rc::new(FakeHostState {
            area,
            routes: manifest.routes.iter().cloned().map(CheckedRoute::new).collect(),
            manifest,
            now: Cell::new(START),
            calls: Cell::new(0),
            used: Cell::new(0),
            host_calls: Cell::new(0),
            max_host_calls: Cell::new(MAX_HOST_CALLS),
            in_job: Cell::new(false),
            taken_jobs: RefCell::default(),
            writes: Cell::new(true),
            state: RefCell::default(),
            network: RefCell::new(Box::new(|_| Err(EgressError::Unresolved))),
            scanner: RefCell::new(Box::new(|_| Ok(Verdict::Skipped))),
            settings: RefCell::default(),
            other_areas: RefCell::default(),
            shared_blobs: RefCell::default(),
            sent: RefCell::default(),
            mail_server: RefCell::new(Box::new(|_| Ok(()))),
            mail: RefCell::default(),
            log: RefCell::default(),
        }))
    }

    /// Returns the area's manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    fn circumstances(&self) -> Call {
        let calls = self.0.calls.get() + 1;
        self.0.calls.set(calls);
        Call { workspace: WORKSPACE.to_string(), now: self.now().0, seed: (calls, 1) }
    }

    /// Runs a call in a transaction: an error restores the previous state. If a query or the commit
    /// finds a unique value twice, the call runs again and checks each `apply`, as in a service.
    fn attempt<T, E>(&self, run: impl Fn(HostFunctions) -> Result<T, E>) -> Result<T, E> {
        let before = self.0.state.borrow().clone();
        let mut result = self.run_once(true, &run);
        let written: &[_] = if result.is_ok() { &self.0.manifest.collections } else { &[] };
        if !self.0.state.borrow_mut().documents.flush(None, written) {
            self.0.state.borrow_mut().clone_from(&before);
            result = self.run_once(false, &run);
        }
        if result.is_err() {
            *self.0.state.borrow_mut() = before;
        }
        result
    }

    fn run_once<T>(&self, defers_unique: bool, run: impl Fn(HostFunctions) -> T) -> T {
        self.0.used.set(0);
        self.0.host_calls.set(0);
        self.0.state.borrow_mut().documents.begin_attempt(defers_unique);
        run(HostFunctions::new(self.clone()))
    }

    /// Executes a request.
    ///
    /// # Errors
    /// The refusal that a client receives: the host's, or the area's.
    ///
    /// # Panics
    /// If the area has no such operation, or if a service would report a fault
    /// of the area (see the [module](self)).
    #[track_caller]
    pub fn call(&self, request: Request) -> Result<SuccessResponse, Problem> {
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
        let result = self.attempt(|host| self.0.area.handle(host, request.clone()));
        self.0.writes.set(true);
        match &result {
            Ok(reply) => contract.check_reply(reply),
            Err(problem) => contract.check_problem(problem),
        }
        let reply = result?;
        let body = reply.body.as_deref().map(serde_json::from_str).transpose();
        Ok(SuccessResponse {
            status: contract.route.success_status,
            body: body.expect("a reply of JSON").unwrap_or_default(),
            version: reply.version,
            replayed: reply.replayed,
        })
    }

    /// Allows as many host calls of one call as the operator would with
    /// `areas.limits.AREA.max_host_calls`.
    pub fn set_max_host_calls(&self, max: u32) {
        self.0.max_host_calls.set(max);
    }

    /// Returns the time of the fake host's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.now.get()
    }

    /// Advances the clock by this number of seconds.
    pub fn advance(&self, seconds: i64) {
        self.0.now.set(self.now().plus_seconds(seconds));
    }

    /// Returns the events published so far.
    #[must_use]
    pub fn events(&self) -> Vec<PublishedEvent> {
        self.0.state.borrow().events.iter().map(|event| (**event).clone()).collect()
    }

    /// Returns the jobs that are enqueued and that no test has taken or run.
    #[must_use]
    pub fn jobs(&self) -> Vec<EnqueuedJob> {
        self.0.state.borrow().jobs.clone()
    }

    /// Removes the enqueued jobs and returns them.
    #[must_use]
    pub fn take_jobs(&self) -> Vec<EnqueuedJob> {
        std::mem::take(&mut self.0.state.borrow_mut().jobs)
    }

    /// Returns the documents of a collection, ordered by id.
    #[must_use]
    pub fn documents(&self, collection: &str) -> Vec<Value> {
        self.0.state.borrow().documents.all(collection)
    }

    /// Stores a document. The collection may belong to another area (`area.collection`).
    pub fn put_document(&self, collection: &str, id: &str, body: Value) {
        let now = self.now();
        self.0.state.borrow_mut().documents.put(collection, id, body.to_string(), now);
    }

    /// Declares another area. This area can then read only those of its collections that are
    /// [`readable_by`](crate::Collection::readable_by) this area.
    pub fn put_area(&self, other: &Area) {
        self.0.other_areas.borrow_mut().push(other.manifest());
    }

    /// Deletes all documents of a collection, to simulate data of a version without that
    /// collection.
    pub fn delete_documents(&self, collection: &str) {
        self.0.state.borrow_mut().documents.clear(collection);
    }

    /// Stores a blob of this area.
    pub fn put_blob(&self, name: &str, content: &[u8]) -> ReceivedBlob {
        self.0.state.borrow_mut().blobs.insert(name.to_owned(), content.to_vec());
        let BlobInfo { size, sha256 } = host::info(content);
        ReceivedBlob { name: name.to_owned(), size, sha256, content_type: None }
    }

    /// Returns the names of this area's blobs.
    #[must_use]
    pub fn blobs(&self) -> Vec<String> {
        self.0.state.borrow().blobs.keys().cloned().collect()
    }

    /// Stores a blob that another area shares with this one.
    pub fn put_shared_blob(&self, area: &str, name: &str, content: &[u8]) {
        let key = (area.to_owned(), name.to_owned());
        self.0.shared_blobs.borrow_mut().insert(key, content.to_vec());
    }

    /// Sets a value of the operator's settings for this area.
    pub fn set(&self, key: &str, value: &str) {
        self.0.settings.borrow_mut().insert(key.to_owned(), value.to_owned());
    }

    /// Sets the function that replaces the malware scanner.
    pub fn scanner(&self, scan: impl FnMut(&[u8]) -> Result<Verdict, ScanError> + 'static) {
        *self.0.scanner.borrow_mut() = Box::new(scan);
    }

    /// Returns the links signed so far.
    #[must_use]
    pub fn links(&self) -> Vec<SignedLink> {
        self.0.state.borrow().links.clone()
    }

    /// Adds a user to the workspace with this role.
    pub fn put_member(&self, user: Uuid, email: &str, role: Role) {
        self.0.state.borrow_mut().members.push(Person {
            user: user.to_string(),
            email: email.to_owned(),
            display_name: email.to_owned(),
            role,
        });
    }

    /// Adds an account that belongs to no workspace.
    pub fn put_account(&self, user: Uuid, email: &str) {
        self.0.state.borrow_mut().accounts.push(Account {
            user: user.to_string(),
            email: email.to_owned(),
            display_name: email.to_owned(),
        });
    }

    /// Returns the members of the workspace.
    #[must_use]
    pub fn members(&self) -> Vec<Person> {
        self.0.state.borrow().members.clone()
    }

    /// Sets the function that replaces the mail server.
    pub fn mail_server(&self, answer: impl FnMut(&Message) -> Result<(), MailError> + 'static) {
        *self.0.mail_server.borrow_mut() = Box::new(answer);
    }

    /// Returns the e-mails sent so far.
    #[must_use]
    pub fn mail(&self) -> Vec<Message> {
        self.0.mail.borrow().clone()
    }

    /// Sets the function that replaces the network.
    pub fn network(
        &self,
        answer: impl FnMut(&Outgoing) -> Result<Incoming, EgressError> + 'static,
    ) {
        *self.0.network.borrow_mut() = Box::new(answer);
    }

    /// Returns the HTTP requests sent so far.
    #[must_use]
    pub fn sent(&self) -> Vec<Outgoing> {
        self.0.sent.borrow().clone()
    }

    /// Returns the log lines written so far.
    #[must_use]
    pub fn log_lines(&self) -> Vec<String> {
        self.0.log.borrow().clone()
    }
}
