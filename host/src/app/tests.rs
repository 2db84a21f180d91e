//! The life of a call, with logic that runs natively and a real store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::sync::Notify;

use super::call::{self, Answered, Caller, Incoming, Refused};
use super::{App, InFlight, Limiter, Parts};
use crate::config::{Config, Record, Source};
use crate::domain::area::{Body, JobRun, Problem, ProblemKind, Reply, Request};
use crate::domain::id::{UserId, WorkspaceId};
use crate::domain::job::{Failure, Outcome};
use crate::domain::role::Role;
use crate::egress::{self, Egress};
use crate::mail::{self, Mail};
use crate::open;
use crate::recordings::Recordings;
use crate::registry::{Ceilings, Registry, fixtures};
use crate::runtime::{Loaded, Runtime};
use crate::store;
use crate::work::{AreaCode, CallError, Ended, LimitsByArea, UnitOfWork};

/// What the area's code does at each run.
#[derive(Clone)]
enum Step {
    Reply(&'static str),
    LoseRace,
    Refuse,
    Wait(Arc<Notify>),
}

/// Code that follows a script, its last step over and over.
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
    ) -> BoxFuture<'a, Ended<Result<Reply, Problem>>> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed) as usize;
        self.locked.lock().push(unit.spec().locked);
        let step = self.steps[run.min(self.steps.len() - 1)].clone();
        Box::pin(async move {
            let result = match step {
                Step::Reply(body) => Ok(Ok(reply(body))),
                Step::LoseRace => Err(CallError::Store(store::Error::RunAgain)),
                Step::Refuse => Ok(Err(refusal())),
                Step::Wait(until) => {
                    until.notified().await;
                    Ok(Ok(reply("\"waited\"")))
                }
            };
            Ended { unit: Some(unit), result }
        })
    }

    fn run<'a>(
        &'a self,
        _: UnitOfWork,
        _: &'a JobRun,
        _: Duration,
    ) -> BoxFuture<'a, Ended<Result<Outcome, Failure>>> {
        unreachable!("no test runs a job")
    }
}

fn reply(body: &str) -> Reply {
    Reply { body: Some(body.to_owned()), version: Some(1), replayed: false }
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

struct Scene {
    app: App,
    code: Arc<Scripted>,
    caller: Caller,
    workspace: WorkspaceId,
    _folder: TempDir,
}

impl Scene {
    async fn new(steps: Vec<Step>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Source { without_environment: true, ..Source::default() };
        let mut config = Config::load(&source).unwrap();
        config.data_dir = folder.path().join("data");
        config.passwords.memory_kib = 64;
        let code = Arc::new(Scripted { steps, runs: AtomicU32::new(0), locked: Mutex::default() });
        let app = app(config).await;
        let route = fixtures::creating("create_note", "/v1/workspaces/{workspace_id}/notes");
        let plan = app.registry.plan(Loaded {
            digest: "d".into(),
            manifest: fixtures::manifest("notes", vec![route]),
            code: Arc::clone(&code) as Arc<dyn AreaCode>,
            generation: "0.2.0",
            imports: vec![],
            compiled_in: None,
        });
        app.registry.activate(plan.unwrap()).unwrap();
        let caller = Caller { user: UserId::new(), role: Role::Member, session: None };
        Self { app, code, caller, workspace: WorkspaceId::new(), _folder: folder }
    }

    async fn call(&self, key: Option<&str>, body: Json) -> Result<Answered, Refused> {
        let incoming = Incoming {
            workspace: self.workspace,
            parameters: vec![],
            body: Body::Json(body.to_string()),
            json: Some(body),
            stored: None,
            idempotency_key: key.map(str::to_owned),
            if_match: None,
            link: None,
        };
        let snapshot = self.app.registry.snapshot();
        let area = snapshot.area("notes").unwrap();
        call::handle(&self.app, area, &area.routes[0], self.caller, incoming, "r-1").await
    }

    fn runs(&self) -> u32 {
        self.code.runs.load(Ordering::Relaxed)
    }
}

pub(super) async fn app(config: Config) -> App {
    let open::Opened { store, keys, identity, clock } = open::open(&config).await.unwrap();
    let egress = Egress::new(egress::Settings::from(&config.egress)).unwrap();
    let mail = Mail::new(mail::Settings::from(&config)).unwrap();
    let runtime = Runtime::new((&config).into(), &keys, clock.clone(), egress, mail).unwrap();
    App::new(Parts {
        base_url: "https://api.example.com".into(),
        clock,
        store,
        keys,
        runtime,
        code_of: |loaded| loaded,
        registry: Arc::new(Registry::new(vec![], Ceilings::default(), LimitsByArea::default())),
        identity,
        limiter: Limiter::new(&config.rates, false),
        in_flight: InFlight::default(),
        node: super::areas::Node::new(&config.areas),
        health: super::health::Health::default(),
        recordings: Recordings::open(Record::default(), config.recordings_dir()).unwrap(),
        installing: tokio::sync::Mutex::default(),
        config,
    })
}

#[tokio::test]
async fn a_call_that_lost_races_is_run_again_and_at_last_with_the_lock() {
    let lose = Step::LoseRace;
    let steps = vec![lose.clone(), lose.clone(), lose, Step::Reply("1")];
    let scene = Scene::new(steps).await;
    let answered = scene.call(None, json!({})).await.unwrap();
    assert_eq!((answered.status, answered.body.as_deref()), (201, Some("1")));
    assert_eq!(*scene.code.locked.lock(), [false, false, true, true]);
}

#[tokio::test]
async fn a_call_that_always_loses_is_given_up() {
    let scene = Scene::new(vec![Step::LoseRace]).await;
    assert!(matches!(scene.call(None, json!({})).await, Err(Refused::Contended)));
    assert_eq!(scene.runs(), scene.app.config.limits.max_reruns + 1);
}

#[tokio::test]
async fn a_key_gives_the_first_answer_again_even_where_the_area_would_now_refuse() {
    let scene = Scene::new(vec![Step::Reply("1"), Step::Reply("2"), Step::Refuse]).await;
    let first = scene.call(Some("key-00000001"), json!({"title": "a"})).await.unwrap();
    assert!(!first.replayed);
    for _ in 0..2 {
        let again = scene.call(Some("key-00000001"), json!({"title": "a"})).await.unwrap();
        assert_eq!(again, Answered { replayed: true, ..first.clone() });
    }
    let refused = scene.call(Some("key-00000002"), json!({"title": "a"})).await;
    assert!(matches!(refused, Err(Refused::Problem(_))));
}

#[tokio::test]
async fn a_key_with_another_body_is_refused() {
    let scene = Scene::new(vec![Step::Reply("1")]).await;
    scene.call(Some("key-00000001"), json!({"title": "a"})).await.unwrap();
    let refused = scene.call(Some("key-00000001"), json!({"title": "b"})).await;
    assert!(matches!(refused, Err(Refused::KeyReused)));
}

#[tokio::test]
async fn a_refusal_is_not_kept_under_its_key() {
    let scene = Scene::new(vec![Step::Refuse, Step::Reply("1")]).await;
    let refused = scene.call(Some("key-00000001"), json!({"title": "a"})).await;
    assert!(matches!(refused, Err(Refused::Problem(_))));
    let answered = scene.call(Some("key-00000001"), json!({"title": "a"})).await.unwrap();
    assert!(!answered.replayed);
}

#[tokio::test]
async fn while_the_first_runs_the_second_is_told_to_wait() {
    let go_on = Arc::new(Notify::new());
    let scene = Scene::new(vec![Step::Wait(Arc::clone(&go_on))]).await;
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
    assert!(matches!(second, Err(Refused::InProgress)));
}
