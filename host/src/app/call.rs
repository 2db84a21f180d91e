//! The life of one call of an area's operation: run, run again where another
//! transaction came between, commit with its idempotency record, answer.
//!
//! Invariant: what the client is told and what is stored are one decision.
//! Nothing is answered as done before it is committed, and a stored answer
//! always wins over running the operation again.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rand::RngExt;
use serde_json::Value as Json;
use tracing::Instrument;

use super::App;
use super::idempotency::{self, Scope};
use super::keyed::Keyed;
use super::record::Written;
use crate::domain::area::{Body, Call, Origin, Parameter, Problem, Reply, Request};
use crate::domain::id::{SessionId, UserId, WorkspaceId};
use crate::domain::manifest::{Idempotency, Method};
use crate::domain::role::Role;
use crate::recordings::Recorder;
use crate::registry::{AreaVersion, RouteContract};
use crate::store::{self, blobs::StoredBlob};
use crate::work::{CallError, End, Ended, Tape, UnitOfWork, UnitSpec, end_of_request};

/// Lost races after which a call takes the lock before it starts.
const LOSSES_BEFORE_LOCK: u32 = 2;

/// Who calls, already authorised.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The signed-in user.
    pub user: UserId,
    /// The user's role in the workspace.
    pub role: Role,
    /// In which session; none where a link was enough.
    pub session: Option<SessionId>,
}

/// A request, already of the right shape.
#[derive(Debug)]
pub struct Incoming {
    /// Whose data.
    pub workspace: WorkspaceId,
    /// Given or defaulted.
    pub parameters: Vec<Parameter>,
    /// The body as the area will see it.
    pub body: Body,
    /// The parsed body, where it is JSON.
    pub json: Option<Json>,
    /// Where the content of a streamed body is.
    pub stored: Option<StoredBlob>,
    /// Where the client sent one and the route takes it.
    pub idempotency_key: Option<String>,
    /// Where the client sent one.
    pub if_match: Option<u64>,
    /// The claims of the signed link it came by.
    pub link: Option<String>,
}

/// A success, committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered {
    /// The route's, or the first answer's.
    pub status: u16,
    /// JSON, or nothing.
    pub body: Option<String>,
    /// For `ETag`.
    pub version: Option<u64>,
    /// True where this is an earlier answer.
    pub replayed: bool,
}

/// Why there is no success; nothing was committed.
#[derive(Debug)]
pub enum Refused {
    /// The area says so.
    Problem(Problem),
    /// The key was used with another body.
    KeyReused,
    /// A call with the key is under way.
    InProgress,
    /// Lost every race.
    Contended,
    /// The call failed; by whose fault, the error tells.
    Failed(CallError),
}

impl From<store::Error> for Refused {
    fn from(error: store::Error) -> Self {
        Self::Failed(CallError::Store(error))
    }
}

/// What became of one run.
enum Run {
    Answered(Answered),
    Again,
    /// The key is stored: its answer stands.
    Stored,
}

/// Answers one operation.
///
/// # Errors
/// See [`Refused`]; in every case nothing of the call is kept.
pub async fn handle(
    app: &App,
    area: &AreaVersion,
    route: &RouteContract,
    caller: Caller,
    incoming: Incoming,
    request_id: &str,
) -> Result<Answered, Refused> {
    handle_watched(app, area, route, caller, incoming, request_id, None).await
}

/// A call that another version is to repeat.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// What it read and left behind.
    pub(super) tape: Arc<Tape>,
    /// What it was asked; nothing, where it did not come to that.
    pub(super) copy: OnceLock<Copy>,
}

/// What a call was asked.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    pub(super) request: Request,
    pub(super) session: Option<SessionId>,
    pub(super) stored: Option<StoredBlob>,
}

/// Answers one operation, and keeps what another version needs to repeat it.
///
/// # Errors
/// See [`handle`].
pub(super) async fn handle_watched(
    app: &App,
    area: &AreaVersion,
    route: &RouteContract,
    caller: Caller,
    incoming: Incoming,
    request_id: &str,
    watch: Option<&Watch>,
) -> Result<Answered, Refused> {
    let written = Written::begin(app, area, route, &incoming, request_id);
    let watching = Watching { watch, recorder: written.as_ref().map(|written| &written.recorder) };
    let answered = handle_and_tell(app, area, route, caller, incoming, request_id, watching).await;
    if let Some(written) = written {
        written.keep();
    }
    if route.route.method != Method::Get {
        note_outcome(app, &answered);
    }
    answered
}

/// For readiness: whether the database still takes what calls write.
fn note_outcome(app: &App, ended: &Result<Answered, Refused>) {
    match ended {
        Ok(answered) if !answered.replayed => app.store.outcomes().succeeded(),
        Err(Refused::Failed(CallError::Store(error))) => app.store.outcomes().failed(error),
        _ => {}
    }
}

/// Who learns how a call goes.
#[derive(Clone, Copy)]
struct Watching<'a> {
    watch: Option<&'a Watch>,
    recorder: Option<&'a Arc<Recorder>>,
}

async fn handle_and_tell(
    app: &App,
    area: &AreaVersion,
    route: &RouteContract,
    caller: Caller,
    incoming: Incoming,
    request_id: &str,
    Watching { watch, recorder }: Watching<'_>,
) -> Result<Answered, Refused> {
    let keyed = claim_key(app, route, caller, &incoming)?;
    let stored = incoming.stored.clone();
    let request = request(app, route, caller, incoming, request_id);
    if let Some(watch) = watch {
        let (request, session, stored) = (request.clone(), caller.session, stored.clone());
        let _ = watch.copy.set(Copy { request, session, stored });
    }
    for losses in 0..=app.config.limits.max_reruns {
        let locked = losses >= LOSSES_BEFORE_LOCK;
        let unit = unit(app, area, route, &request, caller.session, locked);
        let mut unit = unit.recorded(recorder);
        if let Some(watch) = watch {
            unit = unit.recording(&watch.tape);
        }
        attach(&mut unit, &request, stored.as_ref())?;
        match run_once(app, area, route, unit, &request, keyed.as_ref()).await {
            Ok(Run::Answered(answered)) => return Ok(answered),
            Ok(Run::Again) => {}
            Ok(Run::Stored) => {
                if let Some(answer) = stored_answer(app, keyed.as_ref()).await? {
                    return answer;
                }
            }
            Err(refused) => {
                return match stored_answer(app, keyed.as_ref()).await? {
                    Some(answer) => answer,
                    None => Err(refused),
                };
            }
        }
        tokio::time::sleep(backoff(losses)).await;
    }
    Err(Refused::Contended)
}

/// The host keeps no record for areas that keep their own.
fn claim_key(
    app: &App,
    route: &RouteContract,
    caller: Caller,
    incoming: &Incoming,
) -> Result<Option<Keyed>, Refused> {
    let kept_here =
        matches!(route.route.idempotency, Idempotency::Optional | Idempotency::Required);
    let Some(key) = incoming.idempotency_key.as_ref().filter(|_| kept_here) else {
        return Ok(None);
    };
    let scope = Scope {
        workspace: incoming.workspace,
        user: caller.user,
        operation: route.route.operation_id.clone(),
        key: key.clone(),
    };
    Keyed::claim(app, scope, fingerprint(incoming)?).map(Some)
}

/// What makes two requests with one key the same: their bodies, and what the
/// path and the query name.
fn fingerprint(incoming: &Incoming) -> Result<idempotency::Fingerprint, Refused> {
    let body = match &incoming.json {
        Some(json) => idempotency::of_json(json)
            .map_err(|error| Refused::Failed(CallError::Host(error.into())))?,
        None => idempotency::of_other(&incoming.body),
    };
    Ok(idempotency::with_parameters(body, &incoming.parameters))
}

fn request(
    app: &App,
    route: &RouteContract,
    caller: Caller,
    incoming: Incoming,
    request_id: &str,
) -> Request {
    Request {
        call: Call {
            workspace: incoming.workspace,
            now: app.clock.now(),
            seed: rand::rng().random(),
            origin: Origin::Request(request_id.into()),
        },
        user: caller.user,
        role: caller.role,
        operation: route.route.operation_id.clone(),
        parameters: incoming.parameters,
        body: incoming.body,
        idempotency_key: incoming.idempotency_key,
        if_match: incoming.if_match,
        base_url: app.base_url.clone(),
        link: incoming.link,
    }
}

fn unit(
    app: &App,
    area: &AreaVersion,
    route: &RouteContract,
    request: &Request,
    session: Option<SessionId>,
    locked: bool,
) -> UnitOfWork {
    let spec = UnitSpec {
        area: Arc::clone(&area.scope),
        call: request.call.clone(),
        actor: Some(request.user),
        session,
        by_link: request.link.is_some(),
        writes: route.route.writes,
        in_job: false,
        locked,
        limits: area.scope.limits,
        habit: Some(Arc::clone(&route.habit)),
    };
    UnitOfWork::new(app.store.clone(), Arc::clone(&app.keys), spec)
}

/// Gives streamed content its name within the call.
fn attach(
    unit: &mut UnitOfWork,
    request: &Request,
    stored: Option<&StoredBlob>,
) -> Result<(), Refused> {
    let (Body::Blob(received), Some(stored)) = (&request.body, stored) else { return Ok(()) };
    unit.blob_attach(&received.name, stored.clone())
        .map_err(|error| Refused::Failed(CallError::Host(error.into())))
}

async fn run_once(
    app: &App,
    area: &AreaVersion,
    route: &RouteContract,
    unit: UnitOfWork,
    request: &Request,
    keyed: Option<&Keyed>,
) -> Result<Run, Refused> {
    let recorder = unit.recorder().cloned();
    let Ended { unit, result } = area.code.handle(unit, request, route.deadline).await;
    let result = result.and_then(|answer| checked(app.config.development, route, answer));
    if let Some(recorder) = recorder {
        recorder.ended(end_of_request(route.route.success_status, &result));
    }
    let reply = match result {
        Ok(Ok(reply)) => reply,
        Ok(Err(problem)) => return Err(Refused::Problem(problem)),
        Err(CallError::Store(error)) if error.lost_race() => return Ok(Run::Again),
        Err(error) => return Err(Refused::Failed(error)),
    };
    let Some(unit) = unit else {
        let lost = anyhow::anyhow!("a call succeeded, but its unit of work was lost");
        return Err(Refused::Failed(CallError::Host(lost)));
    };
    let answered = answered(route, reply);
    let record = keyed.map(|keyed| keyed.record(app, &answered, request.call.now));
    match commit(unit, End { reply: record, job: None }).await? {
        Ok(()) => Ok(Run::Answered(answered)),
        Err(store::Error::KeyTaken) => Ok(Run::Stored),
        Err(error) if error.lost_race() => Ok(Run::Again),
        Err(error) => Err(error.into()),
    }
}

/// Commits. What writes is committed in a task of its own: a client that hangs
/// up, or a request that runs out of time, does not leave a commit half-way.
async fn commit(unit: UnitOfWork, end: End) -> Result<Result<(), store::Error>, Refused> {
    if !unit.wrote() && end.reply.is_none() {
        return Ok(unit.commit(end).await);
    }
    let committing = tokio::spawn(unit.commit(end).in_current_span());
    committing.await.map_err(|error| Refused::Failed(CallError::Host(error.into())))
}

/// An answer that keeps to the route's contract.
pub(super) fn checked(
    development: bool,
    route: &RouteContract,
    answer: Result<Reply, Problem>,
) -> Result<Result<Reply, Problem>, CallError> {
    if let Ok(reply) = &answer {
        check_reply(development, route, reply).map_err(CallError::Contract)?;
    }
    Ok(answer)
}

/// A reply has a body where the route says so; in development the body is also
/// held against the route's schema, before anything is committed.
fn check_reply(development: bool, route: &RouteContract, reply: &Reply) -> Result<(), String> {
    let Some(schema) = &route.response else {
        return if reply.body.is_none() { Ok(()) } else { Err("it replied with a body".into()) };
    };
    let body = reply.body.as_ref().ok_or("it replied without a body")?;
    if !development {
        return Ok(());
    }
    let value = serde_json::from_str(body).map_err(|error| format!("its reply: {error}"))?;
    let (wrong, _) = crate::registry::violations(schema, &value, 1);
    match wrong.first() {
        Some(first) => Err(format!("its reply: {} {}", first.pointer, first.message)),
        None => Ok(()),
    }
}

pub(super) fn answered(route: &RouteContract, reply: Reply) -> Answered {
    Answered {
        status: route.route.success_status,
        body: reply.body,
        version: reply.version,
        replayed: reply.replayed,
    }
}

async fn stored_answer(
    app: &App,
    keyed: Option<&Keyed>,
) -> Result<Option<Result<Answered, Refused>>, Refused> {
    match keyed {
        Some(keyed) => keyed.stored(app).await,
        None => Ok(None),
    }
}

/// A few milliseconds, more after each loss, and never the same for two
/// callers.
fn backoff(losses: u32) -> Duration {
    let most_micros = 500_u64 << losses.min(6);
    Duration::from_micros(rand::rng().random_range(0..most_micros))
}
