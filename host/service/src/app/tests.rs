//! Tests of request execution, with native handlers and a real store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::sync::Notify;

use super::answer::answer;
use super::call::{AreaRequest, CallRefusal, Caller, CommittedResponse};
use super::{App, AppParts, KeysInFlight, Limiter};
use crate::registry::{AreaTargetState, Registry, RouteMatch, TrialStats};
use crate::{open, testing};
use assurance_contract::{ContractLimits, fixtures};
use assurance_core::budgets::{BudgetExceeded, BudgetOwnerKind, Resource};
use assurance_core::config::{Config, RecordingsConfig};
use assurance_core::domain::area::{Problem, ProblemKind, Request, RequestBody, SuccessReply};
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::role::Role;
use assurance_core::domain::trial::{Trial, TrialMode, TrialShare};
use assurance_core::recordings::Recordings;
use assurance_outside::egress::Egress;
use assurance_outside::mail::Mailer;
use assurance_runtime::Runtime;
use assurance_store as store;
use assurance_work::{AreaCode, CallError, CallOutcome, LimitsByArea, UnitOfWork};

/// Behavior of the handler in one run.
#[derive(Clone)]
enum Step {
    Reply(&'static str),
    LoseRace,
    Refuse,
    Overload,
    OverBudget,
    Wait(Arc<Notify>),
}

/// A handler that follows a script and repeats its last step.
struct Scripted {
    steps: Vec<Step>,
    runs: AtomicU32,
    locked: Mutex<Vec<bool>>,
}

impl AreaCode for Scripted {
    fn handle<'a>(
        &'a self,
        unit: UnitOfWork,
        _: &'a Request,
        _: Duration,
    ) -> BoxFuture<'a, CallOutcome<Result<SuccessReply, Problem>>> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed) as usize;
        self.locked.lock().push(unit.spec().locked);
        let step = self.steps[run.min(self.steps.len() - 1)].clone();
        Box::pin(async move {
            let result = match step {
                Step::Reply(body) => Ok(Ok(reply(body))),
                Step::LoseRace => Err(CallError::Store(store::Error::RunAgain)),
                Step::Refuse => Ok(Err(refusal())),
                Step::Overload => Err(CallError::Overloaded),
                Step::OverBudget => Err(CallError::OverBudget(BudgetExceeded {
                    whose: BudgetOwnerKind::Workspace,
                    name: "w".into(),
                    resource: Resource::Cpu,
                    retry_after_s: 1,
                })),
                Step::Wait(until) => {
                    until.notified().await;
                    Ok(Ok(reply("\"waited\"")))
                }
            };
            CallOutcome { unit: Some(unit), result }
        })
    }
}

fn reply(body: &str) -> SuccessReply {
    SuccessReply { body: Some(body.to_owned()), version: Some(1), replayed: false }
}

fn refusal() -> Problem {
    Problem {
        kind: ProblemKind::Conflict,
        code: None,
        detail: "There is one already.".into(),
        hint: None,
        violations: vec![],
    }
}

struct TestService {
    app: App,
    code: Arc<Scripted>,
    caller: Caller,
    workspace: WorkspaceId,
    _folder: TempDir,
}

impl TestService {
    async fn new(steps: Vec<Step>) -> Self {
        let (config, folder) = testing::config();
        let code = Arc::new(Scripted { steps, runs: AtomicU32::new(0), locked: Mutex::default() });
        let app = app(config).await;
        let route = fixtures::creating("create_note", "/v1/workspaces/{workspace_id}/notes");
        let loaded = testing::loaded(fixtures::manifest("notes", vec![route]), code.clone());
        let version = app.registry.compile(loaded).unwrap();
        let plan = app.registry.plan("notes", AreaTargetState::Live(&version)).unwrap();
        app.registry.activate(plan).unwrap();
        let caller = Caller { user: UserId::new(), role: Role::Member, session: None, token: None };
        Self { app, code, caller, workspace: WorkspaceId::new(), _folder: folder }
    }

    fn request(&self, key: Option<&str>, body: Json) -> AreaRequest {
        AreaRequest {
            id: "r-1".into(),
            caller: self.caller,
            workspace: self.workspace,
            parameters: vec![],
            body: RequestBody::Json(body.to_string()),
            json: Some(body),
            stored: None,
            idempotency_key: key.map(str::to_owned),
            if_match: None,
            link: None,
        }
    }

    async fn call(&self, key: Option<&str>, body: Json) -> Result<CommittedResponse, CallRefusal> {
        let snapshot = self.app.registry.snapshot();
        let area = snapshot.area("notes").unwrap();
        let found = RouteMatch { area, route: &area.routes[0], path_values: vec![] };
        answer(&self.app, &snapshot, &found, self.request(key, body)).await
    }

    /// Begins a canary with the same code that serves every workspace.
    fn begin_canary(&self) -> Arc<TrialStats> {
        let snapshot = self.app.registry.snapshot();
        let share = TrialShare::of_percent(100.0).unwrap();
        let trial = Trial { share, ..testing::trial("c", TrialMode::Canary) };
        let target = AreaTargetState::Trial(&trial, snapshot.area("notes").unwrap());
        self.app.registry.activate(self.app.registry.plan("notes", target).unwrap()).unwrap();
        Arc::clone(&self.app.registry.snapshot().trial("notes").unwrap().figures)
    }

    fn runs(&self) -> u32 {
        self.code.runs.load(Ordering::Relaxed)
    }
}

pub(super) async fn app(config: Config) -> App {
    let open::OpenedResources { store, keys, identity, clock } = open::open(&config).await.unwrap();
    let egress = Egress::new(config.egress.clone()).unwrap();
    let mail = Mailer::new(&config).unwrap();
    let runtime = Runtime::new((&config).into(), &keys, clock.clone(), egress, mail).unwrap();
    App::new(AppParts {
        base_url: "https://api.example.com".into(),
        clock,
        store,
        keys,
        runtime,
        registry: Arc::new(Registry::new(
            vec![],
            ContractLimits::default(),
            LimitsByArea::default(),
        )),
        identity,
        limiter: Limiter::new(&config.rates, false).unwrap(),
        in_flight: KeysInFlight::default(),
        node: super::areas::LocalNode::new(&config.areas),
        health: super::health::HealthCheckState::default(),
        recordings: Recordings::open(RecordingsConfig::default(), config.recordings_dir()).unwrap(),
        installing: tokio::sync::Mutex::default(),
        config,
    })
}

#[tokio::test]
async fn a_call_that_lost_races_is_run_again_and_at_last_with_the_lock() {
    let lose = Step::LoseRace;
    let steps = vec![lose.clone(), lose.clone(), lose, Step::Reply("1")];
    let scene = TestService::new(steps).await;
    let answered = scene.call(None, json!({})).await.unwrap();
    assert_eq!((answered.status, answered.body.as_deref()), (201, Some("1")));
    assert_eq!(*scene.code.locked.lock(), [false, false, true, true]);
}

#[tokio::test]
async fn a_call_that_always_loses_is_given_up() {
    let scene = TestService::new(vec![Step::LoseRace]).await;
    assert!(matches!(scene.call(None, json!({})).await, Err(CallRefusal::Contended)));
    assert_eq!(scene.runs(), scene.app.config.limits.max_reruns + 1);
}

#[tokio::test]
async fn a_key_gives_the_first_answer_again_even_where_the_area_would_now_refuse() {
    let scene = TestService::new(vec![Step::Reply("1"), Step::Reply("2"), Step::Refuse]).await;
    let first = scene.call(Some("key-00000001"), json!({"title": "a"})).await.unwrap();
    assert!(!first.replayed);
    for _ in 0..2 {
        let again = scene.call(Some("key-00000001"), json!({"title": "a"})).await.unwrap();
        assert_eq!(again, CommittedResponse { replayed: true, ..first.clone() });
    }
    let refused = scene.call(Some("key-00000002"), json!({"title": "a"})).await;
    assert!(matches!(refused, Err(CallRefusal::Problem(_))));
}

#[tokio::test]
async fn a_reply_that_is_not_json_is_a_fault_of_the_area() {
    let scene = TestService::new(vec![Step::Reply("nonsense")]).await;
    let refused = scene.call(None, json!({})).await;
    assert!(matches!(refused, Err(CallRefusal::Failed(CallError::Contract(_)))), "{refused:?}");
    let page = scene.app.runtime.area_logs().find("notes").unwrap().page(None, 1);
    assert_eq!(page.faults[0].what.kind, "contract");
}

#[tokio::test]
async fn a_key_with_another_body_is_refused() {
    let scene = TestService::new(vec![Step::Reply("1")]).await;
    scene.call(Some("key-00000001"), json!({"title": "a"})).await.unwrap();
    let refused = scene.call(Some("key-00000001"), json!({"title": "b"})).await;
    assert!(matches!(refused, Err(CallRefusal::KeyReused)));
}

#[tokio::test]
async fn a_refusal_is_not_kept_under_its_key() {
    let scene = TestService::new(vec![Step::Refuse, Step::Reply("1")]).await;
    let refused = scene.call(Some("key-00000001"), json!({"title": "a"})).await;
    assert!(matches!(refused, Err(CallRefusal::Problem(_))));
    let answered = scene.call(Some("key-00000001"), json!({"title": "a"})).await.unwrap();
    assert!(!answered.replayed);
}

#[tokio::test]
async fn while_the_first_runs_the_second_is_told_to_wait() {
    let go_on = Arc::new(Notify::new());
    let scene = TestService::new(vec![Step::Wait(Arc::clone(&go_on))]).await;
    let first = scene.call(Some("key-00000001"), json!({"title": "a"}));
    let second = async {
        while scene.runs() == 0 {
            tokio::task::yield_now().await;
        }
        let second = scene.call(Some("key-00000001"), json!({"title": "a"})).await;
        go_on.notify_one();
        second
    };
    let (first, second) = tokio::join!(first, second);
    assert!(first.is_ok());
    assert!(matches!(second, Err(CallRefusal::InProgress)));
}

#[tokio::test]
async fn a_canary_is_judged_by_refused_and_by_abandoned_calls_too() {
    let wait = Step::Wait(Arc::default());
    let steps = vec![Step::Reply("1"), Step::Overload, Step::OverBudget, wait];
    let service = TestService::new(steps).await;
    let figures = service.begin_canary();
    let seen = || {
        let stats = figures.candidate.stats();
        let latencies = stats.operations.get("create_note").map_or(0, |latency| latency.calls);
        (stats.calls, stats.faults, latencies)
    };
    service.call(None, json!({})).await.unwrap();
    assert_eq!(seen(), (1, 0, 1));
    service.call(None, json!({})).await.unwrap_err();
    assert_eq!(seen(), (2, 1, 1), "a refused call failed, and was not fast");
    service.call(None, json!({})).await.unwrap_err();
    assert_eq!(seen(), (2, 1, 1), "the budget of a workspace depends on no version");
    let left = tokio::time::timeout(Duration::from_millis(50), service.call(None, json!({}))).await;
    assert!(left.is_err());
    assert_eq!(seen(), (3, 1, 2), "an abandoned call took some time, and did not fail");
}
