//! What a call can reach. [`Scope`] is what requests and jobs have in common,
//! [`Ctx`] adds the caller, [`JobCtx`] the way out to the network.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;
use uuid::Uuid;

use crate::blobs::{Blobs, SharedBlobs};
use crate::documents::{Document, Documents};
use crate::extract::Input;
use crate::host::Handle;
use crate::id::Ids;
use crate::job::{Event, Job};
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::wit::assurance::area::jobs::NewJob;
pub use crate::wit::assurance::area::log::Level;
use crate::wit::assurance::area::types::{Call, Request, Role};
use crate::wit::assurance::area::{
    calendar, directory, egress, events, jobs, links, malware, secrets,
};

/// What any call can reach: one workspace, at one moment.
pub struct Scope {
    pub(crate) host: Handle,
    workspace: Uuid,
    now: Timestamp,
    ids: Ids,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("workspace", &self.workspace)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// A UUID the host wrote.
pub(crate) fn uuid(text: &str) -> Uuid {
    text.parse().unwrap_or_else(|_| panic!("the host gave {text:?} for a UUID"))
}

impl Scope {
    pub(crate) fn new(host: Handle, call: &Call) -> Self {
        Self {
            host,
            workspace: uuid(&call.workspace),
            now: Timestamp(call.now),
            ids: Ids::new(call.seed),
        }
    }

    /// The workspace everything in this call belongs to.
    #[must_use]
    pub fn workspace_id(&self) -> Uuid {
        self.workspace
    }

    /// The one moment at which this call happens.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Every function of the contract, with the contract's types.
    #[must_use]
    pub fn host(&self) -> &Handle {
        &self.host
    }

    /// A new time-ordered id (UUIDv7).
    #[must_use]
    pub fn new_id(&self) -> Uuid {
        self.ids.next_id(self.now)
    }

    /// A number below `bound`, for jitter and shuffles; not for secrets.
    #[must_use]
    pub fn random_below(&self, bound: u64) -> u64 {
        let wide = u128::from(self.ids.next_u64()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or_default()
    }

    /// The documents of a collection.
    #[must_use]
    pub fn documents<T: Document>(&self) -> Documents<'_, T> {
        Documents::new(self)
    }

    /// Publishes an event to other areas and webhooks, if the call commits. The
    /// event's id is the same at every delivery.
    #[expect(clippy::needless_pass_by_value, reason = "an event is published once")]
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

    /// Puts work off until after the commit.
    #[track_caller]
    pub fn enqueue<J: Job>(&self, job: &J) -> Uuid {
        self.enqueue_with(job, Later::default())
    }

    /// Puts work off, with more said about it.
    #[track_caller]
    pub fn enqueue_with<J: Job>(&self, job: &J, later: Later) -> Uuid {
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
                "a job exceeds limits.max_jobs, .max_payload_bytes or .max_outgoing_bytes, or the \
                 workspace has jobs.max_waiting_per_area of them"
            ),
        }
    }

    /// Secrets that the host stores and uses, and never returns.
    #[must_use]
    pub fn secrets(&self) -> Secrets<'_> {
        Secrets(self)
    }

    /// Content too large for a document.
    #[must_use]
    pub fn blobs(&self) -> Blobs<'_> {
        Blobs(self)
    }

    /// The blobs of another area, which its manifest shares with this one.
    #[must_use]
    pub fn shared_blobs<'a>(&'a self, area: &'a str) -> SharedBlobs<'a> {
        SharedBlobs { scope: self, area }
    }

    /// A token that lets whom the route says use one of this area's routes
    /// until a moment; the route's [`Link`](crate::Link) gets the claims,
    /// which whoever holds the token can read.
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

    /// What the operator has set for this area.
    #[must_use]
    pub fn setting(&self, key: &str) -> Option<String> {
        self.host.settings_get(key)
    }

    /// Unpredictable bytes, at most 4096.
    #[must_use]
    pub fn random_bytes(&self, length: u32) -> Vec<u8> {
        self.host.crypto_random_bytes(length)
    }

    /// SHA-256.
    #[must_use]
    pub fn sha256(&self, data: &[u8]) -> Vec<u8> {
        self.host.crypto_sha256(data)
    }

    /// SHA-256 in lower-case hex, as the contract writes digests.
    #[must_use]
    pub fn sha256_hex(&self, data: &[u8]) -> String {
        self.sha256(data).iter().fold(String::with_capacity(64), |mut hex, byte| {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
            hex.push(char::from(DIGITS[usize::from(byte & 15)]));
            hex
        })
    }

    /// Strict Ed25519 verification; false for anything that is no signature.
    #[must_use]
    pub fn ed25519_verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        self.host.crypto_ed25519_verify(public_key, message, signature)
    }

    /// The member, where the user is one.
    #[must_use]
    pub fn member(&self, user: Uuid) -> Option<directory::Person> {
        self.host.directory_member(&user.to_string())
    }

    /// All members, by e-mail.
    #[must_use]
    pub fn members(&self) -> Vec<directory::Person> {
        self.host.directory_members()
    }

    /// The workspace's name and slug.
    #[must_use]
    pub fn workspace(&self) -> (String, String) {
        self.host.directory_workspace()
    }

    /// The local time of a moment in an IANA zone.
    ///
    /// # Errors
    /// Where there is no such zone.
    pub fn local(&self, zone: &str, at: Timestamp) -> Result<calendar::Civil, calendar::Error> {
        self.host.calendar_local(zone, at.0)
    }

    /// The moment of a local time: in a gap the offset before it counts, in a
    /// fold the first of the two.
    ///
    /// # Errors
    /// Where there is no such zone.
    pub fn resolve(&self, zone: &str, at: calendar::Civil) -> Result<Timestamp, calendar::Error> {
        self.host.calendar_resolve(zone, at).map(Timestamp)
    }

    /// Would a job be allowed to send to this URL, before names are resolved?
    ///
    /// # Errors
    /// Which rule it breaks.
    pub fn check_url(&self, url: &str) -> Result<(), String> {
        self.host.egress_check(url).map_err(|error| match error {
            egress::Error::Refused(rule) => rule,
            other => format!("{other:?}"),
        })
    }

    /// A line for the operator; the macros [`info!`](crate::info) and
    /// [`warn!`](crate::warn) format one.
    pub fn log(&self, level: Level, message: &str) {
        self.host.log_write(level, message);
    }
}

/// Logs something for the operator: `info!(ctx, "{n} records")`.
#[macro_export]
macro_rules! info {
    ($ctx:expr, $($message:tt)+) => { $ctx.log($crate::Level::Info, &format!($($message)+)) };
}

/// Logs something odd for the operator.
#[macro_export]
macro_rules! warn {
    ($ctx:expr, $($message:tt)+) => { $ctx.log($crate::Level::Warn, &format!($($message)+)) };
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a payload that JSON can express")
}

/// When and how a job is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Later {
    /// Not before; at once where nothing is said.
    pub at: Option<Timestamp>,
    /// What it is about, shown in the queue.
    pub resource: Option<Uuid>,
    /// Of jobs of one kind with one key only one waits or runs at a time.
    pub dedupe_key: Option<String>,
}

/// A request's context: the [`Scope`], and who asks.
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
    /// Parts a request into its circumstances and what the handler takes.
    pub(crate) fn new(host: Handle, request: Request, path: &'static str) -> (Self, Input) {
        let ctx = Self {
            scope: Scope::new(host, &request.call),
            user: uuid(&request.actor.user),
            role: request.actor.role,
            idempotency_key: request.idempotency_key,
            if_match: request.if_match,
            base_url: request.base_url,
        };
        let Request { parameters, body, link, .. } = request;
        (ctx, Input { path, parameters, body, link })
    }

    /// The signed-in user.
    #[must_use]
    pub fn user(&self) -> Uuid {
        self.user
    }

    /// The user's role in the workspace.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// `Idempotency-Key`; always there where the route keeps its own record.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<&str> {
        self.idempotency_key.as_deref()
    }

    /// The version in `If-Match`.
    #[must_use]
    pub fn if_match(&self) -> Option<u64> {
        self.if_match
    }

    /// Refuses a change to another version than the one the client has seen.
    ///
    /// # Errors
    /// A 409 that names the current version.
    pub fn check_if_match(&self, current: u64) -> crate::Result<()> {
        match self.if_match {
            Some(seen) if seen != current => Err(Problem::version_conflict(current)),
            _ => Ok(()),
        }
    }

    /// Where this service answers for clients, without a trailing slash.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }
}

/// A job's context: the [`Scope`], which job it is, and the way out.
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
    pub(crate) fn new(host: Handle, job: &crate::wit::Job) -> Self {
        Self { scope: Scope::new(host, &job.call), job: uuid(&job.id), attempt: job.attempt }
    }

    /// The job's id, the same at every attempt.
    #[must_use]
    pub fn job_id(&self) -> Uuid {
        self.job
    }

    /// 1 at the first run.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Sends a request out to the network. What a job sends cannot be taken
    /// back: an attempt that fails afterwards sends it again.
    ///
    /// # Errors
    /// Where no answer came; any status is an answer.
    pub fn send(&self, request: &egress::Outgoing) -> Result<egress::Incoming, egress::Error> {
        self.host.egress_send(request)
    }

    /// Has the operator's malware scanner look at a blob of this area.
    ///
    /// # Errors
    /// Where there is no verdict.
    pub fn scan(&self, blob: &str) -> Result<malware::Verdict, malware::Error> {
        self.host.malware_scan(blob)
    }
}

/// Secrets of this workspace and area.
#[derive(Debug)]
pub struct Secrets<'a>(&'a Scope);

impl Secrets<'_> {
    /// Keeps or replaces a secret of 1 to 4096 bytes.
    #[track_caller]
    pub fn put(&self, name: &str, value: &[u8]) {
        if let Err(error) = self.0.host.secrets_put(name, value) {
            panic!("secret {name:?}: {error:?}");
        }
    }

    /// Forgets a secret, where there is one.
    #[track_caller]
    pub fn delete(&self, name: &str) {
        match self.0.host.secrets_delete(name) {
            Ok(()) | Err(secrets::Error::NotFound) => {}
            Err(error) => panic!("secret {name:?}: {error:?}"),
        }
    }

    /// Is there such a secret?
    #[must_use]
    #[track_caller]
    pub fn exists(&self, name: &str) -> bool {
        match self.0.host.secrets_exists(name) {
            Ok(exists) => exists,
            Err(error) => panic!("secret {name:?}: {error:?}"),
        }
    }

    /// HMAC-SHA256 of the message under the secret; `None` if there is no
    /// such secret.
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
