//! What operators read when a version is refused: the cause and the way out.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tempfile::TempDir;

use super::super::App;
use super::super::tests::app;
use super::checks::{check, needs_approval};
use super::rehearsal::rehearse;
use super::{
    Activation, InstallError, RolledBack, TrialWish, activate, approve, begin_trial, remove,
    roll_back, stop_trial,
};
use crate::config::{Config, Source};
use crate::domain::area::{JobRun, Problem, Reply, Request};
use crate::domain::deployment::{Deployment, Stage};
use crate::domain::job::{Failure, Outcome};
use crate::domain::manifest::{Capability, Collection, Manifest};
use crate::domain::time::Timestamp;
use crate::domain::trial::{Mode, Share};
use crate::registry::AreaVersion;
use crate::registry::fixtures::{creating, manifest, route};
use crate::runtime::{LoadError, Loaded};
use crate::store::deployments;
use crate::work::{AreaCode, CallError, Ended, UnitOfWork};

const NOTES: &str = "/v1/workspaces/{workspace_id}/notes";

/// Code that traps at every call.
struct Traps;

impl AreaCode for Traps {
    fn handle<'a>(
        &'a self,
        _: UnitOfWork,
        _: &'a Request,
        _: Duration,
    ) -> BoxFuture<'a, Ended<Result<Reply, Problem>>> {
        let error = CallError::Trap("wasm `unreachable` instruction executed".into());
        Box::pin(async { Ended { unit: None, result: Err(error) } })
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

fn notes() -> Manifest {
    manifest("notes", vec![creating("create_note", NOTES), route("list_notes", NOTES)])
}

fn loaded(manifest: Manifest) -> Loaded {
    let digest = format!("digest of {} {}", manifest.name, manifest.version);
    Loaded {
        digest,
        manifest,
        code: Arc::new(Traps),
        generation: "0.2.0",
        imports: vec![],
        compiled_in: None,
    }
}

/// A host on which notes 0.1.0 answers.
async fn scene() -> (App, TempDir) {
    scene_with(|_| ()).await
}

async fn scene_with(change: impl FnOnce(&mut Config)) -> (App, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let source = Source { without_environment: true, ..Source::default() };
    let mut config = Config::load(&source).unwrap();
    config.data_dir = folder.path().join("data");
    change(&mut config);
    let app = app(config).await;
    app.registry.activate(app.registry.plan(loaded(notes())).unwrap()).unwrap();
    (app, folder)
}

fn next() -> Manifest {
    Manifest { version: semver::Version::new(0, 2, 0), ..notes() }
}

async fn refusal(candidate: &Manifest, force: Option<&str>) -> String {
    let (app, _folder) = scene().await;
    check(&app, None, candidate, force).await.expect_err("it is refused").to_string()
}

#[tokio::test]
async fn a_breaking_version_is_told_what_it_breaks_and_can_be_forced() {
    let mut breaking = next();
    breaking.routes.pop();
    breaking.routes[0].success_status = 200;
    insta::assert_snapshot!(refusal(&breaking, None).await);
    let (app, _folder) = scene().await;
    let forced = check(&app, None, &breaking, Some("nobody uses it")).await.unwrap();
    assert_eq!(forced.report.broken().count(), 2);
}

#[tokio::test]
async fn a_forbidden_version_is_told_that_it_cannot_be_forced() {
    let (app, _folder) = scene().await;
    let collection = Collection {
        name: "notes".into(),
        summary: String::new(),
        schema: serde_json::json!({"type": "object"}),
        fields: vec![],
        indexes: vec![],
        readers: vec!["*".into()],
    };
    let published = Manifest { collections: vec![collection], ..notes() };
    app.registry.activate(app.registry.plan(loaded(published)).unwrap()).unwrap();
    let refused = check(&app, None, &next(), Some("I want it")).await;
    insta::assert_snapshot!(refused.expect_err("it is refused"));
}

#[tokio::test]
async fn an_over_asking_version_is_told_what_it_waits_for() {
    let (app, _folder) = scene().await;
    let capabilities = vec![Capability::Log, Capability::Egress, Capability::Secrets];
    let asking = Manifest { capabilities, ..next() };
    let checked = check(&app, None, &asking, None).await.unwrap();
    insta::assert_snapshot!(needs_approval(&asking, "d1ge57", &checked));
}

#[tokio::test]
async fn a_taken_route_is_told_whose_it_is() {
    let (app, _folder) = scene().await;
    let thief = manifest("ledger", vec![route("list_entries", NOTES)]);
    let refused = app.registry.plan(loaded(thief)).expect_err("it is refused");
    insta::assert_snapshot!(InstallError::from(refused));
}

#[tokio::test]
async fn a_looping_describe_is_told_what_describe_may_do() {
    let looped = CallError::CpuTime(Duration::from_secs(1));
    insta::assert_snapshot!(InstallError::from(LoadError::Describe(looped)));
}

#[tokio::test]
async fn a_version_that_fails_its_first_call_is_told_which_it_was() {
    let (app, _folder) = scene().await;
    let live = app.registry.snapshot();
    let failed = rehearse(&app, live.area("notes").unwrap()).await;
    insta::assert_snapshot!(failed.expect_err("it traps"));
}

/// Keeps a version as if it had been deployed, ready in memory.
async fn keep(app: &App, manifest: Manifest, stage: Stage) -> String {
    let text = serde_json::to_string(&manifest).unwrap();
    let loaded = loaded(manifest);
    let version = Deployment {
        number: 0,
        area: "notes".into(),
        digest: loaded.digest.clone(),
        version: loaded.manifest.version.to_string(),
        size: 0,
        object: String::new(),
        publisher: None,
        signature: None,
        stage,
        received_at: Timestamp(0),
        received_by: "ada".into(),
        approved_at: None,
        approved_by: None,
        live_at: None,
    };
    let mut connection = app.store.writer().await.unwrap();
    deployments::insert(&mut connection, &version, &text).await.unwrap();
    drop(connection);
    let plan = app.registry.plan(loaded).unwrap();
    app.node.keep_warm(plan.change().now.as_ref().unwrap());
    version.digest
}

fn wish(digest: &str) -> Activation<'_> {
    Activation { area: "notes", digest: Some(digest), why: None, force: None }
}

#[tokio::test]
async fn a_version_that_waits_answers_only_when_it_is_approved() {
    let (app, _folder) = scene().await;
    let first = keep(&app, notes(), Stage::Staged).await;
    activate(&app, "ada", wish(&first)).await.unwrap();
    let asking = Manifest { capabilities: vec![Capability::Egress], ..next() };
    let digest = keep(&app, asking, Stage::AwaitingApproval).await;
    let refused = activate(&app, "ada", wish(&digest)).await;
    assert!(matches!(refused, Err(InstallError::NeedsApproval { .. })), "{refused:?}");
    approve(&app, "bob", "notes", &digest, Some("it sends mail")).await.unwrap();
    let again = approve(&app, "eve", "notes", &digest, None).await;
    insta::assert_snapshot!(again.expect_err("it is approved"));
    activate(&app, "ada", wish(&digest)).await.unwrap().unwrap();
    assert_eq!(app.registry.snapshot().area("notes").unwrap().digest, digest);
    let back = roll_back(&app, "ada", "notes", "it sends too much").await.unwrap();
    let RolledBack::Live(back) = back else { panic!("{back:?}") };
    assert_eq!(back.now.unwrap().digest, first);
    let nothing = roll_back(&app, "ada", "notes", "again").await;
    insta::assert_snapshot!(nothing.expect_err("nothing is before it"));
}

#[tokio::test]
async fn to_remove_an_area_is_no_way_around_an_approval() {
    let (app, _folder) = scene().await;
    let first = keep(&app, notes(), Stage::Staged).await;
    activate(&app, "ada", wish(&first)).await.unwrap();
    let asking = Manifest { capabilities: vec![Capability::Egress], ..next() };
    let asking = keep(&app, asking, Stage::AwaitingApproval).await;
    let mut breaking = Manifest { version: semver::Version::new(0, 3, 0), ..notes() };
    breaking.routes.pop();
    let breaking = keep(&app, breaking, Stage::Staged).await;
    remove(&app, "ada", "notes", None, true).await.unwrap();

    let refused = activate(&app, "ada", wish(&asking)).await;
    assert!(matches!(refused, Err(InstallError::NeedsApproval { .. })), "{refused:?}");
    let refused = activate(&app, "ada", wish(&breaking)).await;
    assert!(matches!(refused, Err(InstallError::Incompatible(_))), "{refused:?}");
    // What was granted before comes back without being asked for.
    activate(&app, "ada", wish(&first)).await.unwrap().unwrap();
}

#[test]
fn a_manifest_survives_being_stored() {
    let text = serde_json::to_string(&notes()).unwrap();
    assert_eq!(serde_json::from_str::<Manifest>(&text).unwrap(), notes());
}

fn canary(digest: &str) -> TrialWish {
    TrialWish {
        area: "notes".into(),
        digest: digest.into(),
        mode: Mode::Canary,
        share: Share::of_percent(5.0).unwrap(),
        workspaces: [].into(),
        why: None,
    }
}

#[tokio::test]
async fn a_version_that_cannot_be_tried_is_told_why() {
    let (app, _folder) = scene().await;
    let live = keep(&app, notes(), Stage::Staged).await;
    activate(&app, "ada", wish(&live)).await.unwrap();
    let again = begin_trial(&app, "ada", &canary(&live)).await;
    insta::assert_snapshot!(again.expect_err("it is live"));

    let mut breaking = Manifest { version: semver::Version::new(0, 3, 0), ..notes() };
    breaking.routes.pop();
    let breaking = keep(&app, breaking, Stage::Staged).await;
    let refused = begin_trial(&app, "ada", &canary(&breaking)).await;
    insta::assert_snapshot!(refused.expect_err("clients would notice"));

    let none = stop_trial(&app, "ada", "notes", "x").await;
    insta::assert_snapshot!(none.expect_err("nothing is tried"));
    let good = keep(&app, next(), Stage::Staged).await;
    begin_trial(&app, "ada", &canary(&good)).await.unwrap();
    let other = begin_trial(&app, "ada", &canary(&breaking)).await;
    insta::assert_snapshot!(other.expect_err("another is tried"));
}

#[tokio::test]
async fn a_trial_ends_when_what_it_is_held_against_changes() {
    let (app, _folder) = scene().await;
    let live = keep(&app, notes(), Stage::Staged).await;
    activate(&app, "ada", wish(&live)).await.unwrap();
    let tried = keep(&app, next(), Stage::Staged).await;
    begin_trial(&app, "ada", &canary(&tried)).await.unwrap();
    assert_eq!(app.registry.snapshot().trial("notes").unwrap().version.digest, tried);
    remove(&app, "ada", "notes", None, false).await.unwrap();
    assert!(app.registry.snapshot().trial("notes").is_none());
    let nothing = activate(&app, "ada", Activation { digest: None, ..wish("") }).await;
    assert!(matches!(nothing, Err(InstallError::NoTrial { .. })), "{nothing:?}");
}

#[tokio::test]
async fn a_trial_that_runs_here_is_not_begun_again() {
    let (app, _folder) = scene().await;
    let live = keep(&app, notes(), Stage::Staged).await;
    activate(&app, "ada", wish(&live)).await.unwrap();
    let tried = keep(&app, next(), Stage::Staged).await;
    let trial = begin_trial(&app, "ada", &canary(&tried)).await.unwrap();
    let figures = || Arc::clone(&app.registry.snapshot().trial("notes").unwrap().figures);
    let seen = figures();
    // As a node does that read the row while the operator's call was at work.
    super::follow_trials::begin_one(&app, &trial).await.unwrap();
    assert!(Arc::ptr_eq(&seen, &figures()));
}

#[tokio::test]
async fn what_was_wanted_last_stays_ready_whatever_its_area() {
    let (app, _folder) = scene_with(|config| config.areas.warm_versions = 2).await;
    let other = manifest("ledger", vec![route("list_entries", "/v1/workspaces/{workspace_id}/x")]);
    let of = |manifest| app.registry.plan(loaded(manifest)).unwrap().change().now.clone().unwrap();
    let (first, second, other) = (of(notes()), of(next()), of(other));
    for version in [&first, &second, &first, &other] {
        app.node.keep_warm(version);
    }
    let is_ready =
        |version: &AreaVersion| app.node.warm(&version.manifest.name, &version.digest).is_some();
    assert_eq!([&first, &second, &other].map(|version| is_ready(version)), [true, false, true]);
    assert!(app.node.warm("notes", &other.digest).is_none(), "another area's");
}
