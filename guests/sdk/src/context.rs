//! Contexts of calls. [`Scope`] has the functions that requests and jobs share, [`Ctx`] adds the
//! caller of a request, [`JobCtx`] adds network access.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;
use uuid::Uuid;

use crate::blobs::{Blobs, SharedBlobs};
use crate::documents::{Document, Documents};
use crate::extract::HandlerInput;
use crate::host::HostFunctions;
use crate::id::IdGenerator;
use crate::job::{Event, Job, Progress};
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::wit::assurance::area::jobs::NewJob;
pub use crate::wit::assurance::area::log::Level;
use crate::wit::assurance::area::types::{Call, Request, Role};
use crate::wit::assurance::area::{
    calendar, directory, egress, events, jobs, links, malware, secrets, types,
};

/// Context of any call, a request or a job: one workspace at one time.
pub struct Scope {
    pub(crate) host: HostFunctions,
    workspace: Uuid,
    now: Timestamp,
    ids: IdGenerator,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("workspace", &self.workspace)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// Parses a UUID that the host wrote.
pub(crate) fn uuid(text: &str) -> Uuid {
    text.parse().unwrap_or_else(|_| panic!("the host gave {text:?} for a UUID"))
}

impl Scope {
    pub(crate) fn new(host: HostFunctions, call: &Call) -> Self {
        Self {
            host,
            workspace: uuid(&call.workspace),
            now: Timestamp(call.now),
            ids: IdGenerator::new(call.seed),
        }
    }

    /// Returns the id of the call's workspace.
    #[must_use]
    pub fn workspace_id(&self) -> Uuid {
        self.workspace
    }

    /// Returns the time of the call. It does not change during the call.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the host functions of the contract, with the contract's own types.
    #[must_use]
    pub fn host(&self) -> &HostFunctions {
        &self.host
    }

    /// Returns a new time-ordered id (UUIDv7).
    #[must_use]
    pub fn new_id(&self) -> Uuid {
        self.ids.next_id(self.now)
    }

    /// Returns a number below `bound`, for jitter and shuffles; not for secrets.
    #[must_use]
    pub fn random_below(&self, bound: u64) -> u64 {
        let wide = u128::from(self.ids.next_u64()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or_default()
    }

    /// Returns access to the documents of a collection.
    #[must_use]
    pub fn documents<T: Document>(&self) -> Documents<'_, T> {
        Documents::new(self)
    }

    /// Publishes an event to other areas and webhooks if the call commits. Returns the event's id,
    /// which is the same at every delivery.
    #[track_caller]
    pub fn publish<E: Event>(&self, event: E) -> Uuid {
        match self.host.events_publish(E::NAME, &json(&event)) {
            Ok(id) => uuid(&id),
            Err(events::Error::Misuse(what)) => panic!("events misused: {what}"),
            Err(events::Error::LimitExceeded) => panic!(
                "an event exceeds limits.max_events, .max_payload_bytes or .max_outgoing_bytes"
            ),
        }
    }

    /// Enqueues a job to run after the call has committed. Returns the job's id.
    #[track_caller]
    pub fn enqueue<J: Job>(&self, job: &J) -> Uuid {
        self.enqueue_with(job, JobOptions::default())
    }

    /// Enqueues a job with options, to run after the call has committed. Returns the job's id.
    #[track_caller]
    pub fn enqueue_with<J: Job>(&self, job: &J, later: JobOptions) -> Uuid {
        let job = NewJob {
            kind: J::KIND.to_owned(),
            payload: json(job),
            resource: later.resource.map(|id| id.to_string()),
            available_at: later.at.map(|at| at.0),
            dedupe_key: later.dedupe_key,
        };
        match self.host.jobs_enqueue(&job) {
            Ok(id) => uuid(&id),
            Err(jobs::Error::Misuse(what)) => panic!("jobs misused: {what}"),
            Err(jobs::Error::LimitExceeded) => panic!(
                "a job exceeds limits.max_jobs, .max_payload_bytes or .max_outgoing_bytes, or \
                 enqueues more when jobs.max_waiting_per_area of the area wait in the workspace"
            ),
        }
    }

    /// Returns the jobs of any area about this resource that have reported progress and have not
    /// ended: area, kind and progress.
    #[must_use]
    pub fn progress_of(&self, resource: Uuid) -> Vec<(String, String, Progress)> {
        let jobs = self.host.jobs_progress_of(&resource.to_string());
        let running = |job: jobs::RunningJob| {
            let progress = Progress { done: job.progress.done, total: job.progress.total };
            (job.area, job.kind, progress)
        };
        jobs.into_iter().map(running).collect()
    }

    /// Returns access to the secrets that the host stores for this area; their values cannot be
    /// read.
    #[must_use]
    pub fn secrets(&self) -> Secrets<'_> {
        Secrets(self)
    }

    /// Returns access to this area's blobs: content too large for a document.
    #[must_use]
    pub fn blobs(&self) -> Blobs<'_> {
        Blobs(self)
    }

    /// Returns access to the blobs of another area, if its manifest shares them with this area.
    #[must_use]
    pub fn shared_blobs<'a>(&'a self, area: &'a str) -> SharedBlobs<'a> {
        SharedBlobs { scope: self, area }
    }

    /// Signs a link to one of this area's routes, valid until `expires_at`, and returns its token.
    /// The route's [`LinkClaims`](crate::LinkClaims) argument receives the claims. Anyone who has
    /// the token can read the claims.
    #[must_use]
    #[track_caller]
    pub fn sign_link(
        &self,
        operation: &str,
        claims: &impl Serialize,
        expires_at: Timestamp,
    ) -> String {
        match self.host.links_sign(operation, &json(claims), expires_at.0) {
            Ok(token) => token,
            Err(links::Error::Misuse(what)) => panic!("links misused: {what}"),
            Err(links::Error::NoSession) => panic!("a link for {operation} needs a session"),
        }
    }

    /// Returns the operator's setting with this key for this area; `None` if it is not set.
    #[must_use]
    pub fn setting(&self, key: &str) -> Option<String> {
        self.host.settings_get(key)
    }

    /// Returns this number of cryptographically random bytes. The host aborts a call that requests
    /// more than 4096 at a time.
    #[must_use]
    pub fn random_bytes(&self, length: u32) -> Vec<u8> {
        self.host.crypto_random_bytes(length)
    }

    /// Returns the SHA-256 digest, 32 bytes.
    #[must_use]
    pub fn sha256(&self, data: &[u8]) -> Vec<u8> {
        self.host.crypto_sha256(data)
    }

    /// Returns the SHA-256 digest in lower-case hex, the form of digests in the contract.
    #[must_use]
    pub fn sha256_hex(&self, data: &[u8]) -> String {
        self.sha256(data).iter().fold(String::with_capacity(64), |mut hex, byte| {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
            hex.push(char::from(DIGITS[usize::from(byte & 15)]));
            hex
        })
    }

    /// Verifies an Ed25519 signature strictly (RFC 8032). Returns false for any invalid key or
    /// signature.
    #[must_use]
    pub fn ed25519_verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        self.host.crypto_ed25519_verify(public_key, message, signature)
    }

    /// Returns the member of the workspace with this id; `None` if the user is not a member.
    #[must_use]
    pub fn member(&self, user: Uuid) -> Option<directory::Person> {
        self.host.directory_member(&user.to_string())
    }

    /// Returns all members of the workspace, ordered by e-mail.
    #[must_use]
    pub fn members(&self) -> Vec<directory::Person> {
        self.host.directory_members()
    }

    /// Returns name and slug of the call's workspace.
    #[must_use]
    pub fn workspace(&self) -> (String, String) {
        self.host.directory_workspace()
    }

    /// Converts a time to local time in an IANA time zone.
    ///
    /// # Errors
    /// If the zone is unknown or the time is out of range.
    pub fn local(&self, zone: &str, at: Timestamp) -> Result<calendar::Civil, calendar::Error> {
        self.host.calendar_local(zone, at.0)
    }

    /// Converts a local time to UTC. In a gap (a clock set forward), the offset before the gap is
    /// used. In a fold (a clock set back), the first of the two times is returned.
    ///
    /// # Errors
    /// If the zone is unknown or the time is out of range.
    pub fn resolve(&self, zone: &str, at: calendar::Civil) -> Result<Timestamp, calendar::Error> {
        self.host.calendar_resolve(zone, at).map(Timestamp)
    }

    /// Checks whether a job may send to this URL. The host name is not resolved.
    ///
    /// # Errors
    /// The rule that the URL violates.
    pub fn check_url(&self, url: &str) -> Result<(), String> {
        self.host.egress_check(url).map_err(|error| match error {
            egress::Error::Refused(rule) => rule,
            other => format!("{other:?}"),
        })
    }

    /// Writes a line to the operator's log. The macros [`info!`](crate::info) and
    /// [`warn!`](crate::warn) format one.
    pub fn log(&self, level: Level, message: &str) {
        self.host.log_write(level, message);
    }
}

/// Logs a line at level `info` for the operator: `info!(ctx, "{n} records")`.
#[macro_export]
macro_rules! info {
    ($ctx:expr, $($message:tt)+) => { $ctx.log($crate::Level::Info, &format!($($message)+)) };
}

/// Logs a line at level `warn` for the operator.
#[macro_export]
macro_rules! warn {
    ($ctx:expr, $($message:tt)+) => { $ctx.log($crate::Level::Warn, &format!($($message)+)) };
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a payload that JSON can express")
}

/// Options of an enqueued job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobOptions {
    /// Earliest time of the first run; `None` means as soon as a worker is free.
    pub at: Option<Timestamp>,
    /// Id of the resource that the job is about, shown in the queue.
    pub resource: Option<Uuid>,
    /// At most one job with this kind and key waits or runs; another one is not enqueued.
    pub dedupe_key: Option<String>,
}

/// Context of a request: the [`Scope`], and the caller with the request's headers.
#[derive(Debug)]
pub struct Ctx {
    scope: Scope,
    user: Uuid,
    role: Role,
    idempotency_key: Option<String>,
    if_match: Option<u64>,
    base_url: String,
}

impl Deref for Ctx {
    type Target = Scope;

    fn deref(&self) -> &Scope {
        &self.scope
    }
}

impl Ctx {
    /// Splits a request into its context and the input of the handler's arguments.
    pub(crate) fn new(
        host: HostFunctions,
        request: Request,
        path: &'static str,
    ) -> (Self, HandlerInput) {
        let ctx = Self {
            scope: Scope::new(host, &request.call),
            user: uuid(&request.actor.user),
            role: request.actor.role,
            idempotency_key: request.idempotency_key,
            if_match: request.if_match,
            base_url: request.base_url,
        };
        let Request { parameters, body, link, .. } = request;
        (ctx, HandlerInput { path, parameters, body, link })
    }

    /// Returns the id of the signed-in user.
    #[must_use]
    pub fn user(&self) -> Uuid {
        self.user
    }

    /// Returns the user's role in the workspace.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the value of `Idempotency-Key`; always `Some` on a route with
    /// [`idempotency_kept_by_area`](crate::RouteBuilder::idempotency_kept_by_area).
    #[must_use]
    pub fn idempotency_key(&self) -> Option<&str> {
        self.idempotency_key.as_deref()
    }

    /// Returns the resource version in `If-Match`; `None` if the client sent none.
    #[must_use]
    pub fn if_match(&self) -> Option<u64> {
        self.if_match
    }

    /// Refuses the request if `If-Match` names another version than `current`.
    ///
    /// # Errors
    /// A 409 with the current version.
    pub fn check_if_match(&self, current: u64) -> crate::Result<()> {
        match self.if_match {
            Some(seen) if seen != current => Err(Problem::version_conflict(current)),
            _ => Ok(()),
        }
    }

    /// Returns the base URL of this service for clients, without a trailing slash.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }
}

/// Context of a job: the [`Scope`], the job's id and attempt, and network access.
#[derive(Debug)]
pub struct JobCtx {
    scope: Scope,
    job: Uuid,
    attempt: u32,
}

impl Deref for JobCtx {
    type Target = Scope;

    fn deref(&self) -> &Scope {
        &self.scope
    }
}

impl JobCtx {
    pub(crate) fn new(host: HostFunctions, job: &crate::wit::Job) -> Self {
        Self { scope: Scope::new(host, &job.call), job: uuid(&job.id), attempt: job.attempt }
    }

    /// Returns the job's id, which is the same at every attempt.
    #[must_use]
    pub fn job_id(&self) -> Uuid {
        self.job
    }

    /// Returns the number of the attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Stores the progress of this job with the commit of this step. Members see it in the queue.
    /// Without effect in a call that runs several jobs together.
    #[track_caller]
    pub fn report_progress(&self, done: u64, total: u64) {
        match self.host.jobs_report_progress(types::Progress { done, total }) {
            Ok(()) => {}
            Err(jobs::Error::Misuse(what)) => panic!("jobs misused: {what}"),
            Err(jobs::Error::LimitExceeded) => panic!("a progress exceeds no limit"),
        }
    }

    /// Sends an HTTP request to another server. A sent request cannot be undone: if the attempt
    /// fails afterwards, the next one sends it again.
    ///
    /// # Errors
    /// If there is no response. A response with any status is a success.
    pub fn send(&self, request: &egress::Outgoing) -> Result<egress::Incoming, egress::Error> {
        self.host.egress_send(request)
    }

    /// Sends HTTP requests at the same time, like [`JobCtx::send`]. Returns their results in the
    /// same order.
    pub fn send_all(
        &self,
        requests: &[egress::Outgoing],
    ) -> Vec<Result<egress::Incoming, egress::Error>> {
        self.host.egress_send_all(requests)
    }

    /// Scans a blob of this area with the operator's malware scanner.
    ///
    /// # Errors
    /// If the scanner returns no verdict.
    pub fn scan(&self, blob: &str) -> Result<malware::Verdict, malware::Error> {
        self.host.malware_scan(blob)
    }
}

/// Secrets of this workspace and area. The host stores and uses them; their values cannot be read.
#[derive(Debug)]
pub struct Secrets<'a>(&'a Scope);

impl Secrets<'_> {
    /// Stores or replaces the secret with this name, 1 to 4096 bytes.
    #[track_caller]
    pub fn put(&self, name: &str, value: &[u8]) {
        if let Err(error) = self.0.host.secrets_put(name, value) {
            panic!("secret {name:?}: {error:?}");
        }
    }

    /// Deletes the secret with this name, if it exists.
    #[track_caller]
    pub fn delete(&self, name: &str) {
        match self.0.host.secrets_delete(name) {
            Ok(()) | Err(secrets::Error::NotFound) => {}
            Err(error) => panic!("secret {name:?}: {error:?}"),
        }
    }

    /// Whether a secret with this name exists.
    #[must_use]
    #[track_caller]
    pub fn exists(&self, name: &str) -> bool {
        match self.0.host.secrets_exists(name) {
            Ok(exists) => exists,
            Err(error) => panic!("secret {name:?}: {error:?}"),
        }
    }

    /// Returns the HMAC-SHA256 of the message under the secret with this name; `None` if there is
    /// no such secret.
    #[must_use]
    #[track_caller]
    pub fn hmac_sha256(&self, name: &str, message: &[u8]) -> Option<Vec<u8>> {
        match self.0.host.secrets_hmac_sha256(name, message) {
            Ok(code) => Some(code),
            Err(secrets::Error::NotFound) => None,
            Err(error) => panic!("secret {name:?}: {error:?}"),
        }
    }
}
