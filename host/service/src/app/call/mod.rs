//! Executes one request to an area. Retries on write conflicts. Commits the
//! effects together with the idempotency record, then returns the response.
//!
//! Invariant: a response is sent only after its effects are committed. If a
//! response is already stored for this idempotency key, it is returned and the
//! handler's effects are discarded.

mod repeatable;
mod reply;
mod types;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::counter;
use rand::RngExt as _;
use tracing::Instrument as _;

pub(super) use self::repeatable::RepeatableRequest;
pub(super) use self::reply::checked;
pub use self::types::{AreaRequest, CallRefusal, Caller, CommittedResponse};

use super::App;
use super::idempotency::{self, ScopedIdempotencyKey};
use super::idempotency_guard::IdempotencyGuard;
use super::record::RequestRecording;
use crate::registry::AreaVersion;
use assurance_contract::CompiledRoute;
use assurance_core::domain::manifest::{IdempotencyMode, Method};
use assurance_core::recordings::Recorder;
use assurance_store as store;
use assurance_work::{
    CallError, CallOutcome, CommitAdditions, ReadLog, UnitOfWork, UnitOfWorkSpec, request_outcome,
};

/// Number of write conflicts after which a request takes the workspace lock
/// before it runs.
const CONFLICTS_BEFORE_LOCK: u32 = 2;

/// Data of a request on the live version that a shadow version needs to execute a copy of it.
#[derive(Debug, Default)]
pub(super) struct ShadowCapture {
    /// Log of the last attempt's reads, writes, published events and enqueued jobs.
    pub(super) read_log: Arc<ReadLog>,
    /// Request with its clock and seed; empty if it was refused before its first attempt.
    pub(super) request: OnceLock<RepeatableRequest>,
}

/// Executes requests on one route of one version of an area.
#[derive(Clone, Copy)]
pub(super) struct AreaRequestExecutor<'a> {
    pub(super) app: &'a App,
    pub(super) area: &'a AreaVersion,
    pub(super) route: &'a CompiledRoute,
    /// Receives the data of the request for a shadow version; `None` if no shadow version executes
    /// a copy.
    pub(super) capture: Option<&'a ShadowCapture>,
}

/// Result of one attempt to execute a request: committed, or to be tried again.
enum AttemptOutcome {
    Committed(CommittedResponse),
    Conflict,
    /// Another request with the same idempotency key committed first.
    KeyTaken,
}

impl AreaRequestExecutor<'_> {
    /// Executes a request to an area, with retries after write conflicts, and records it if
    /// configured.
    ///
    /// # Errors
    /// See [`CallRefusal`]. No effect of the call is stored.
    pub(super) async fn run(self, request: AreaRequest) -> Result<CommittedResponse, CallRefusal> {
        let recording = RequestRecording::begin(self.app, self.area, self.route, &request);
        let recorder = recording.as_ref().map(|sink| Arc::clone(&sink.recorder));
        let response = self.run_recorded(request, recorder).await;
        if let Some(RequestRecording { recorder, picked }) = recording {
            self.app.recordings.keep(&recorder, picked);
        }
        if self.route.route.method != Method::Get {
            self.note_outcome(&response);
        }
        response
    }

    /// Reports to the readiness check whether the database accepted the writes of this request.
    fn note_outcome(&self, response: &Result<CommittedResponse, CallRefusal>) {
        let outcomes = self.app.store.outcomes();
        match response {
            Ok(response) if !response.replayed => outcomes.succeeded(),
            Err(CallRefusal::Failed(CallError::Store(error))) => outcomes.failed(error),
            _ => {}
        }
    }

    async fn run_recorded(
        &self,
        request: AreaRequest,
        recorder: Option<Arc<Recorder>>,
    ) -> Result<CommittedResponse, CallRefusal> {
        let guard = self.claim_key(&request)?;
        let request = RepeatableRequest::new(self.app, self.route, request);
        if let Some(capture) = self.capture {
            let _ = capture.request.set(request.clone());
        }
        for conflicts in 0..=self.app.config.limits.max_reruns {
            let locked = conflicts >= CONFLICTS_BEFORE_LOCK;
            let unit = self.unit(&request, locked)?.with_recorder(recorder.as_ref());
            match self.attempt(unit, &request, guard.as_ref()).await {
                Ok(AttemptOutcome::Committed(response)) => return Ok(response),
                Ok(AttemptOutcome::Conflict) => {}
                Ok(AttemptOutcome::KeyTaken) => {
                    if let Some(stored) = self.stored(guard.as_ref()).await? {
                        return stored;
                    }
                }
                Err(refusal) => {
                    return self.stored(guard.as_ref()).await?.unwrap_or(Err(refusal));
                }
            }
            tokio::time::sleep(backoff(conflicts)).await;
        }
        Err(CallRefusal::Contended)
    }

    /// Claims the request's idempotency key. Returns `None` if the request has no key, or if the
    /// area stores the responses itself.
    fn claim_key(&self, request: &AreaRequest) -> Result<Option<IdempotencyGuard>, CallRefusal> {
        let route = &self.route.route;
        let by_host =
            matches!(route.idempotency, IdempotencyMode::Optional | IdempotencyMode::Required);
        let Some(key) = request.idempotency_key.as_ref().filter(|_| by_host) else {
            return Ok(None);
        };
        let scope = ScopedIdempotencyKey {
            workspace: request.workspace,
            user: request.caller.user,
            operation: route.operation_id.clone(),
            key: idempotency::key_of(request.caller.token, key),
        };
        IdempotencyGuard::claim(self.app, scope, fingerprint(request)?).map(Some)
    }

    fn unit(&self, request: &RepeatableRequest, locked: bool) -> Result<UnitOfWork, CallRefusal> {
        let isolation_profile = Some(Arc::clone(&self.route.isolation_profile));
        let spec =
            UnitOfWorkSpec { locked, isolation_profile, ..request.spec(self.area, self.route) };
        let mut unit = UnitOfWork::new(self.app.store.clone(), Arc::clone(&self.app.keys), spec);
        if let Some(capture) = self.capture {
            unit = unit.with_read_log(&capture.read_log);
        }
        request.attach_body(&mut unit)?;
        Ok(unit)
    }

    /// Runs the request's handler once and commits its effects.
    async fn attempt(
        &self,
        unit: UnitOfWork,
        request: &RepeatableRequest,
        guard: Option<&IdempotencyGuard>,
    ) -> Result<AttemptOutcome, CallRefusal> {
        let recorder = unit.recorder().cloned();
        let running = self.area.code.handle(unit, &request.request, self.route.deadline);
        let CallOutcome { unit, result } = running.await;
        let development = self.app.config.development;
        let result = result.and_then(|reply| {
            checked(development, self.route, reply).inspect_err(|fault| self.report(request, fault))
        });
        if let Some(recorder) = recorder {
            recorder.record_outcome(request_outcome(self.route.route.success_status, &result));
        }
        let reply = match result {
            Ok(Ok(reply)) => reply,
            Ok(Err(problem)) => return Err(CallRefusal::Problem(problem)),
            Err(CallError::Store(error)) if error.is_write_conflict() => {
                return Ok(AttemptOutcome::Conflict);
            }
            Err(error) => return Err(CallRefusal::Failed(error)),
        };
        let lost = || anyhow::anyhow!("a call succeeded, but its unit of work was lost");
        let unit = unit.ok_or_else(lost).map_err(CallRefusal::host)?;
        let response = CommittedResponse::new(self.route, reply);
        let now = request.request.call.now;
        let record = guard.filter(|_| self.route.is_replayable());
        let record = record.map(|guard| guard.record(self.app, &response, now));
        match commit(unit, CommitAdditions { reply: record, jobs: Vec::new() }).await? {
            Ok(()) => Ok(AttemptOutcome::Committed(response)),
            Err(store::Error::KeyTaken) => Ok(AttemptOutcome::KeyTaken),
            Err(error) if error.is_write_conflict() => Ok(AttemptOutcome::Conflict),
            Err(error) => Err(error.into()),
        }
    }

    /// Counts and logs a reply that breaks its route's contract, as the runtime does other faults.
    fn report(&self, request: &RepeatableRequest, error: &CallError) {
        let Some(fault) = error.to_fault() else { return };
        let (area, kind) = (&self.area.manifest.name, fault.kind.clone());
        counter!("assurance_area_faults_total", "area" => area.clone(), "kind" => kind)
            .increment(1);
        let (digest, origin) = (&self.area.digest, &request.request.call.origin);
        self.app.runtime.area_logs().of(area).failed(digest, Some(origin), fault, &[]);
    }

    /// Returns the stored response for the request's idempotency key; `None` if there is none.
    async fn stored(
        &self,
        guard: Option<&IdempotencyGuard>,
    ) -> Result<Option<Result<CommittedResponse, CallRefusal>>, CallRefusal> {
        match guard.filter(|_| self.route.is_replayable()) {
            Some(guard) => guard.stored(self.app).await,
            None => Ok(None),
        }
    }
}

/// Returns the fingerprint by which two requests with one idempotency key are compared. It covers
/// body and parameters.
fn fingerprint(request: &AreaRequest) -> Result<idempotency::IdempotencyFingerprint, CallRefusal> {
    let body = match &request.json {
        Some(json) => idempotency::of_json(json).map_err(CallRefusal::host)?,
        None => idempotency::of_other(&request.body),
    };
    Ok(idempotency::with_parameters(body, &request.parameters))
}

/// Commits the unit of work. A unit with writes is committed in its own task, so that a disconnect
/// or a timeout of the client never interrupts a commit.
async fn commit(
    unit: UnitOfWork,
    options: CommitAdditions,
) -> Result<Result<(), store::Error>, CallRefusal> {
    if !unit.wrote() && options.reply.is_none() {
        return Ok(unit.commit(options).await);
    }
    let committing = tokio::spawn(unit.commit(options).in_current_span());
    committing.await.map_err(CallRefusal::host)
}

/// Returns a random wait before the next attempt: at most 0.5 ms, doubled with each conflict up to
/// 32 ms.
fn backoff(conflicts: u32) -> Duration {
    let most_micros = 500_u64 << conflicts.min(6);
    Duration::from_micros(rand::rng().random_range(0..most_micros))
}
