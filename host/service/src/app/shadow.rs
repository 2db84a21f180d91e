//! Shadow versions: after the live version has responded to a request, the shadow version executes
//! a copy, and both responses are compared.
//!
//! The copy has the request's seed and clock, so ids, random values and times are equal. Documents
//! that the live call read come from its [`ReadLog`], so both calls see the same state. Writes,
//! events and jobs of the copy are compared and discarded; it never opens a write transaction.
//! Everything else that the copy reads (other documents, users, secrets, blobs, the queue) is read
//! a moment later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use serde_json::{Value as Json, json};

use super::App;
use super::call::{
    AreaRequest, AreaRequestExecutor, CallRefusal, CommittedResponse, RepeatableRequest,
    ShadowCapture,
};
use crate::registry::{ComparedRequest, RouteMatch, ShadowPermit, VersionOnTrial};
use assurance_contract::CompiledRoute;
use assurance_core::domain::area::Problem;
use assurance_work::{CallError, CallOutcome, ReadLog, UnitOfWork};

/// Executes a request on the live version. Then the shadow version executes a copy, if the request
/// is sampled and not too many copies are running.
///
/// # Errors
/// See [`CallRefusal`]; the live version's error.
pub(super) async fn answer(
    app: &App,
    trial: &Arc<VersionOnTrial>,
    found: &RouteMatch<'_, '_>,
    request: AreaRequest,
) -> Result<CommittedResponse, CallRefusal> {
    let (area, route) = (found.area, found.route);
    let most = app.config.areas.shadow.max_concurrent;
    let picked = rand::rng().random_range(0.0..100.0) < trial.trial.share.percent();
    let permit = picked.then(|| trial.figures.compared.begin(most)).flatten();
    let Some(permit) = permit else {
        return AreaRequestExecutor { app, area, route, capture: None }.run(request).await;
    };
    let capture = ShadowCapture::default();
    let request_id = Arc::clone(&request.id);
    let begun = Instant::now();
    let answered =
        AreaRequestExecutor { app, area, route, capture: Some(&capture) }.run(request).await;
    let took = begun.elapsed();
    let ShadowCapture { read_log, request } = capture;
    let told = compared_outcome(answered.as_ref(), || read_log.effects());
    if let (Some(live), Some(copy)) = (told, request.into_inner()) {
        let shadow =
            ShadowRequest { app: app.clone(), trial: Arc::clone(trial), read_log, request_id };
        tokio::spawn(async move { shadow.run(copy, live, took, permit).await });
    }
    answered
}

/// Copy of a request that the shadow version executes after the live version has responded.
struct ShadowRequest {
    app: App,
    trial: Arc<VersionOnTrial>,
    read_log: Arc<ReadLog>,
    request_id: Arc<str>,
}

impl ShadowRequest {
    async fn run(
        self,
        copy: RepeatableRequest,
        live: Json,
        live_took: Duration,
        _copying: ShadowPermit,
    ) {
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
        let asked = ComparedRequest {
            request_id: &self.request_id,
            operation,
            exact: self.read_log.is_exact(),
            shown: self.app.config.areas.shadow.show_values,
        };
        figures.compared.compare(&asked, &live, &candidate);
    }

    /// Executes the copy on the shadow version. Returns its response and effects; `None` if the
    /// host or the database failed.
    async fn answer(&self, copy: &RepeatableRequest, route: &CompiledRoute) -> Option<Json> {
        let unit = self.unit(copy, route)?;
        let code = &self.trial.version.code;
        let CallOutcome { unit, result } = code.handle(unit, &copy.request, route.deadline).await;
        let left = || unit.map(UnitOfWork::into_effects).unwrap_or_default();
        match result {
            Ok(Ok(reply)) => Some(success(&CommittedResponse::new(route, reply), left())),
            Ok(Err(problem)) => Some(refusal(&problem)),
            Err(error) => fault(&error),
        }
    }

    fn unit(&self, copy: &RepeatableRequest, route: &CompiledRoute) -> Option<UnitOfWork> {
        let spec = copy.spec(&self.trial.version, route);
        let unit = UnitOfWork::new(self.app.store.clone(), Arc::clone(&self.app.keys), spec);
        let mut unit = unit.replaying(&self.read_log);
        copy.attach_body(&mut unit).ok()?;
        Some(unit)
    }
}

/// Status in the comparison of responses if the area's code ended with a fault.
const FAULT: &str = "fault";

/// Normalizes the live version's response for the comparison with the shadow version's. Returns
/// `None` if the host or the database failed, or the response is a stored one.
fn compared_outcome(
    answered: Result<&CommittedResponse, &CallRefusal>,
    left: impl FnOnce() -> Json,
) -> Option<Json> {
    match answered {
        Ok(answered) if answered.replayed => None,
        Ok(answered) => Some(success(answered, left())),
        Err(CallRefusal::Problem(problem)) => Some(refusal(problem)),
        Err(CallRefusal::Failed(error)) => fault(error),
        Err(_) => None,
    }
}

fn success(answered: &CommittedResponse, left: Json) -> Json {
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
