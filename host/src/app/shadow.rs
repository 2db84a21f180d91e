//! A version in the shadow of the live one: when a request has been answered,
//! it answers a copy, and both are held against each other.
//!
//! The copy has the request's seed and clock, so that ids, random values and
//! times are the same, and is told what the live call read of documents
//! ([`Tape`]), so that both saw one state. What it writes, publishes and
//! enqueues is compared and dropped; no transaction that writes is begun for
//! it. Documents that only it asks for, and what else it reads (people,
//! secrets, blobs, the queue), it sees a moment later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use serde_json::{Value as Json, json};

use super::App;
use super::call::{self, Answered, Caller, Copy, Incoming, Refused, Watch};
use crate::domain::area::{Body, Problem};
use crate::registry::{Asked, Copying, Match, OnTrial, RouteContract};
use crate::work::{CallError, Ended, Tape, UnitOfWork, UnitSpec};

/// Answers one operation by the live version, and has the shadow answer a
/// copy, where the request is in its share and not too many copies are run.
///
/// # Errors
/// See [`Refused`]: as the live version's.
pub(super) async fn answer(
    app: &App,
    trial: &Arc<OnTrial>,
    found: &Match<'_, '_>,
    caller: Caller,
    incoming: Incoming,
    request_id: &str,
) -> Result<Answered, Refused> {
    let (live, route) = (found.area, found.route);
    let most = app.config.areas.shadow.max_concurrent;
    let copying = is_picked(trial).then(|| trial.figures.compared.begin(most)).flatten();
    let Some(copying) = copying else {
        return call::handle(app, live, route, caller, incoming, request_id).await;
    };
    let watch = Watch::default();
    let begun = Instant::now();
    let answered =
        call::handle_watched(app, live, route, caller, incoming, request_id, Some(&watch)).await;
    let took = begun.elapsed();
    let Watch { tape, copy } = watch;
    let told = told(answered.as_ref(), || tape.left());
    if let (Some(live), Some(copy)) = (told, copy.into_inner()) {
        let request_id = request_id.to_owned();
        let shadow = Shadow { app: app.clone(), trial: Arc::clone(trial), tape, request_id };
        tokio::spawn(async move { shadow.run(copy, live, took, copying).await });
    }
    answered
}

fn is_picked(trial: &OnTrial) -> bool {
    rand::rng().random_range(0.0..100.0) < trial.trial.share.percent()
}

/// One copy of a request.
struct Shadow {
    app: App,
    trial: Arc<OnTrial>,
    tape: Arc<Tape>,
    request_id: String,
}

impl Shadow {
    async fn run(self, copy: Copy, live: Json, live_took: Duration, _copying: Copying) {
        let operation = copy.request.operation.as_str();
        let figures = &self.trial.figures;
        let begun = Instant::now();
        let candidate = match self.trial.route(operation) {
            Some(route) => self.answer(&copy, route).await,
            None => Some(json!({"status": "the operation is gone"})),
        };
        let Some(candidate) = candidate else { return figures.compared.failed() };
        let failed = |told: &Json| told["status"] == FAULT;
        figures.live.answered(operation, live_took, failed(&live));
        figures.candidate.answered(operation, begun.elapsed(), failed(&candidate));
        let asked = Asked {
            request_id: &self.request_id,
            operation,
            exact: self.tape.is_exact(),
            shown: self.app.config.areas.shadow.show_values,
        };
        figures.compared.compare(&asked, &live, &candidate);
    }

    /// What the shadow answers and would leave behind; nothing, where that is
    /// not for it to say.
    async fn answer(&self, copy: &Copy, route: &RouteContract) -> Option<Json> {
        let unit = self.unit(copy, route)?;
        let code = &self.trial.version.code;
        let Ended { unit, result } = code.handle(unit, &copy.request, route.deadline).await;
        let left = || unit.map(UnitOfWork::would_leave).unwrap_or_default();
        match result {
            Ok(Ok(reply)) => Some(success(&call::answered(route, reply), left())),
            Ok(Err(problem)) => Some(refusal(&problem)),
            Err(error) => fault(&error),
        }
    }

    fn unit(&self, copy: &Copy, route: &RouteContract) -> Option<UnitOfWork> {
        let version = &self.trial.version;
        let spec = UnitSpec {
            area: Arc::clone(&version.scope),
            call: copy.request.call.clone(),
            actor: Some(copy.request.user),
            session: copy.session,
            by_link: copy.request.link.is_some(),
            writes: route.route.writes,
            in_job: false,
            locked: false,
            limits: version.scope.limits,
            habit: None,
        };
        let unit = UnitOfWork::new(self.app.store.clone(), Arc::clone(&self.app.keys), spec);
        let mut unit = unit.playing(&self.tape);
        if let (Body::Blob(received), Some(stored)) = (&copy.request.body, &copy.stored) {
            unit.blob_attach(&received.name, stored.clone()).ok()?;
        }
        Some(unit)
    }
}

/// How a fault of an area's code is told.
const FAULT: &str = "fault";

/// An answer as it is compared; nothing, where the area did not give it.
fn told(answered: Result<&Answered, &Refused>, left: impl FnOnce() -> Json) -> Option<Json> {
    match answered {
        Ok(answered) if answered.replayed => None,
        Ok(answered) => Some(success(answered, left())),
        Err(Refused::Problem(problem)) => Some(refusal(problem)),
        Err(Refused::Failed(error)) => fault(error),
        Err(_) => None,
    }
}

fn success(answered: &Answered, left: Json) -> Json {
    let body = answered
        .body
        .as_deref()
        .map(|body| serde_json::from_str(body).unwrap_or_else(|_| json!(body)));
    json!({
        "status": answered.status.to_string(),
        "headers": {"etag": answered.version, "idempotent-replayed": answered.replayed},
        "body": body.unwrap_or(Json::Null),
        "effects": left,
    })
}

fn refusal(problem: &Problem) -> Json {
    let violations = problem.violations.iter();
    let violations = violations.map(|one| json!({"pointer": one.pointer, "message": one.message}));
    let kind = format!("{:?}", problem.kind);
    json!({
        "status": problem.code.as_ref().unwrap_or(&kind),
        "body": {
            "detail": problem.detail,
            "hint": problem.hint,
            "violations": violations.collect::<Vec<_>>(),
        },
    })
}

fn fault(error: &CallError) -> Option<Json> {
    error.is_areas_fault().then(|| json!({"status": FAULT}))
}
