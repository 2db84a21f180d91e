//! Tests of decisions about areas with a real store: the error texts for operators, and the
//! resulting state of the rows and of this node.

mod files;
mod fleet;
mod searched;
mod tables;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::checks::{self, CompatibilityCheckResult, PlannedVersionUse, needs_approval};
use super::smoke_test::smoke_test;
use super::state::{DesiredArea, DesiredAreas};
use super::{
    ActivationRequest, AreaActionError, AreaChange, TrialRequest, activate, approve, begin_trial,
    follow, remove, roll_back, rows, stop_trial,
};
use crate::app::App;
use crate::app::folder::ComponentInstaller;
use crate::app::tests::app;
use crate::registry::{AreaTargetState, AreaVersion};
use crate::testing;
use assurance_contract::fixtures::{creating, manifest, route};
use assurance_core::config::Config;
use assurance_core::domain::area::{Problem, Request, SuccessReply};
use assurance_core::domain::deployment::{StoredVersion, VersionStage};
use assurance_core::domain::manifest::{
    Capability, CollectionSpec, FieldKind, FieldSpec, IndexSpec, Manifest,
};
use assurance_core::domain::time::Timestamp;
use assurance_core::domain::trial::{TrialMode, TrialShare};
use assurance_runtime::{LoadError, LoadedArea};
use assurance_store::Connection;
use assurance_store::deployments::{self, PointerMove};
use assurance_store::testing as store_testing;
use assurance_work::{
    AreaCode, CallError, CallOutcome, RunningCallSelector, TimeLimit, UnitOfWork,
};

const NOTES: &str = "/v1/workspaces/{workspace_id}/notes";

/// Code that traps at every call.
struct TrappingCode;

impl AreaCode for TrappingCode {
    fn handle<'a>(
        &'a self,
        _: UnitOfWork,
        _: &'a Request,
        _: Duration,
    ) -> BoxFuture<'a, CallOutcome<Result<SuccessReply, Problem>>> {
        let error = CallError::Trap("wasm `unreachable` instruction executed".into());
        Box::pin(async { CallOutcome { unit: None, result: Err(error) } })
    }
}

/// Code that reports when its calls are ended.
struct EndedCode(mpsc::UnboundedSender<()>);

impl AreaCode for EndedCode {
    fn handle<'a>(
        &'a self,
        unit: UnitOfWork,
        _: &'a Request,
        _: Duration,
    ) -> BoxFuture<'a, CallOutcome<Result<SuccessReply, Problem>>> {
        Box::pin(async { CallOutcome { unit: Some(unit), result: Err(CallError::Replaced) } })
    }

    fn end_calls(&self, which: RunningCallSelector) {
        if let RunningCallSelector::BegunBefore(_) = which {
            self.0.send(()).unwrap();
        }
    }
}

fn notes() -> Manifest {
    manifest("notes", vec![creating("create_note", NOTES), route("list_notes", NOTES)])
}

fn loaded(manifest: Manifest) -> LoadedArea {
    testing::loaded(manifest, Arc::new(TrappingCode))
}

fn compiled(app: &App, manifest: Manifest) -> Arc<AreaVersion> {
    app.registry.compile(loaded(manifest)).unwrap()
}

fn put(app: &App, manifest: Manifest) {
    let plan = app.registry.plan("notes", AreaTargetState::Live(&compiled(app, manifest))).unwrap();
    app.registry.activate(plan).unwrap();
}

async fn check(
    app: &App,
    candidate: &Manifest,
    force: Option<&str>,
) -> Result<CompatibilityCheckResult, AreaActionError> {
    let candidate = compiled(app, candidate.clone());
    let as_live = PlannedVersionUse::Live { force, kept: false };
    checks::check(app, &DesiredArea::default(), &candidate, as_live).await
}

/// Returns a host on which version 0.1.0 of the area `notes` is live.
async fn scene() -> (App, TempDir) {
    scene_with(|_| ()).await
}

async fn scene_with(change: impl FnOnce(&mut Config)) -> (App, TempDir) {
    let (mut config, folder) = testing::config();
    change(&mut config);
    let app = app(config).await;
    put(&app, notes());
    (app, folder)
}

/// Returns a host on which version 0.1.0 of the area `notes` is stored and live,
/// and the digest of that version.
async fn scene_live() -> (App, TempDir, String) {
    let (app, folder) = scene().await;
    let live = keep(&app, notes(), VersionStage::Staged).await;
    activate(&app, "ada", activation(&live)).await.unwrap();
    (app, folder, live)
}

fn next() -> Manifest {
    Manifest { version: semver::Version::new(0, 2, 0), ..notes() }
}

async fn refusal(candidate: &Manifest, force: Option<&str>) -> String {
    let (app, _folder) = scene().await;
    check(&app, candidate, force).await.expect_err("it is refused").to_string()
}

#[tokio::test]
async fn a_breaking_version_is_told_what_it_breaks_and_can_be_forced() {
    let mut breaking = next();
    breaking.routes.pop();
    breaking.routes[0].success_status = 200;
    insta::assert_snapshot!(refusal(&breaking, None).await);
    let (app, _folder) = scene().await;
    let forced = check(&app, &breaking, Some("nobody uses it")).await.unwrap();
    assert_eq!(forced.report.broken().count(), 2);
}

#[tokio::test]
async fn a_forbidden_version_is_told_that_it_cannot_be_forced() {
    let (app, _folder) = scene().await;
    let collection = CollectionSpec {
        name: "notes".into(),
        summary: String::new(),
        schema: serde_json::json!({"type": "object"}),
        fields: vec![],
        indexes: vec![],
        readers: vec!["*".into()],
    };
    let published = Manifest { collections: vec![collection], ..notes() };
    put(&app, published);
    let refused = check(&app, &next(), Some("I want it")).await;
    insta::assert_snapshot!(refused.expect_err("it is refused"));
}

#[tokio::test]
async fn an_over_asking_version_is_told_what_it_waits_for() {
    let (app, _folder) = scene().await;
    let capabilities = vec![Capability::Log, Capability::Egress, Capability::Secrets];
    let asking = Manifest { capabilities, ..next() };
    let checked = check(&app, &asking, None).await.unwrap();
    let asking = LoadedArea { digest: "d1ge57".into(), ..loaded(asking) };
    insta::assert_snapshot!(needs_approval(&app.registry.compile(asking).unwrap(), &checked));
}

#[tokio::test]
async fn a_taken_route_is_told_whose_it_is() {
    let (app, _folder) = scene().await;
    let thief = manifest("ledger", vec![route("list_entries", NOTES)]);
    let thief = compiled(&app, thief);
    let refused =
        app.registry.plan("ledger", AreaTargetState::Live(&thief)).expect_err("it is refused");
    insta::assert_snapshot!(AreaActionError::from(refused));
}

#[tokio::test]
async fn a_looping_describe_is_told_what_describe_may_do() {
    let limit = TimeLimit { time: Duration::from_secs(1), setting: "fixed for `describe`" };
    let looped = CallError::CpuTime(limit);
    insta::assert_snapshot!(AreaActionError::from(LoadError::Describe(looped)));
}

#[tokio::test]
async fn a_version_that_fails_its_first_call_is_told_which_it_was() {
    let (app, _folder) = scene().await;
    let live = app.registry.snapshot();
    let failed = smoke_test(&app, live.area("notes").unwrap()).await;
    insta::assert_snapshot!(failed.expect_err("it traps"));
}

/// Stores a version as if it had been deployed, and keeps it in memory.
async fn keep(app: &App, manifest: Manifest, stage: VersionStage) -> String {
    keep_loaded(app, loaded(manifest), stage).await
}

async fn keep_loaded(app: &App, loaded: LoadedArea, stage: VersionStage) -> String {
    let text = serde_json::to_string(&loaded.manifest).unwrap();
    let version = StoredVersion {
        area: loaded.manifest.name.clone(),
        version: loaded.manifest.version.to_string(),
        size: 0,
        object: String::new(),
        stage,
        received_at: Timestamp(0),
        ..store_testing::deployment(&loaded.digest)
    };
    let mut connection = app.store.writer().await.unwrap();
    deployments::insert(&mut connection, &version, &text).await.unwrap();
    drop(connection);
    app.node.keep_warm(&app.registry.compile(loaded).unwrap());
    version.digest
}

/// Makes a version live in the rows, as another node does.
async fn go_live(connection: &mut Connection, area: &str, digest: &str, revision: i64) {
    let (digest, at) = (Some(digest), Timestamp(1));
    let moved = PointerMove { area, digest, answered: None, at, by: "ben" };
    deployments::point(connection, &moved, revision, VersionStage::Retired).await.unwrap();
}

fn activation(digest: &str) -> ActivationRequest<'_> {
    ActivationRequest { area: "notes", digest: Some(digest), why: None, force: None }
}

#[tokio::test]
async fn a_version_that_waits_answers_only_when_it_is_approved() {
    let (app, _folder, first) = scene_live().await;
    let asking = Manifest { capabilities: vec![Capability::Egress], ..next() };
    let digest = keep(&app, asking, VersionStage::AwaitingApproval).await;
    let refused = activate(&app, "ada", activation(&digest)).await;
    assert!(matches!(refused, Err(AreaActionError::NeedsApproval { .. })), "{refused:?}");
    approve(&app, "bob", "notes", &digest, Some("it sends mail")).await.unwrap();
    let again = approve(&app, "eve", "notes", &digest, None).await;
    insta::assert_snapshot!(again.expect_err("it is approved"));
    activate(&app, "ada", activation(&digest)).await.unwrap().unwrap();
    assert_eq!(app.registry.snapshot().area("notes").unwrap().digest, digest);
    let back = roll_back(&app, "ada", "notes", "it sends too much", None).await.unwrap();
    let AreaChange::Live(back) = back else { panic!("{back:?}") };
    assert_eq!(back.now.unwrap().digest, first);
    let nothing = roll_back(&app, "ada", "notes", "again", None).await;
    insta::assert_snapshot!(nothing.expect_err("nothing is before it"));
}

#[tokio::test]
async fn to_remove_an_area_is_no_way_around_an_approval() {
    let (app, _folder, first) = scene_live().await;
    let asking = Manifest { capabilities: vec![Capability::Egress], ..next() };
    let asking = keep(&app, asking, VersionStage::AwaitingApproval).await;
    let mut breaking = Manifest { version: semver::Version::new(0, 3, 0), ..notes() };
    breaking.routes.pop();
    let breaking = keep(&app, breaking, VersionStage::Staged).await;
    remove(&app, "ada", "notes", None, true).await.unwrap();

    let refused = activate(&app, "ada", activation(&asking)).await;
    assert!(matches!(refused, Err(AreaActionError::NeedsApproval { .. })), "{refused:?}");
    let refused = activate(&app, "ada", activation(&breaking)).await;
    assert!(matches!(refused, Err(AreaActionError::Incompatible(_))), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("area activate notes --digest digest of "));
    // Capabilities that were granted to an earlier live version need no new approval.
    activate(&app, "ada", activation(&first)).await.unwrap().unwrap();
}

#[test]
fn a_manifest_survives_being_stored() {
    let text = serde_json::to_string(&notes()).unwrap();
    assert_eq!(serde_json::from_str::<Manifest>(&text).unwrap(), notes());
}

fn canary(digest: &str) -> TrialRequest {
    TrialRequest {
        area: "notes".into(),
        digest: digest.into(),
        mode: TrialMode::Canary,
        share: TrialShare::of_percent(5.0).unwrap(),
        workspaces: [].into(),
        why: None,
    }
}

#[tokio::test]
async fn a_version_that_cannot_be_tried_is_told_why() {
    let (app, _folder, live) = scene_live().await;
    let again = begin_trial(&app, "ada", &canary(&live)).await;
    insta::assert_snapshot!(again.expect_err("it is live"));

    let mut breaking = Manifest { version: semver::Version::new(0, 3, 0), ..notes() };
    breaking.routes.pop();
    let breaking = keep(&app, breaking, VersionStage::Staged).await;
    let refused = begin_trial(&app, "ada", &canary(&breaking)).await;
    insta::assert_snapshot!(refused.expect_err("clients would notice"));

    let none = stop_trial(&app, "ada", "notes", "x").await;
    insta::assert_snapshot!(none.expect_err("nothing is tried"));
    let good = keep(&app, next(), VersionStage::Staged).await;
    begin_trial(&app, "ada", &canary(&good)).await.unwrap();
    let other = begin_trial(&app, "ada", &canary(&breaking)).await;
    insta::assert_snapshot!(other.expect_err("another is tried"));
}

#[tokio::test]
async fn an_area_that_does_not_exist_is_named_before_its_versions() {
    let (app, _folder) = scene().await;
    let digest = "0".repeat(64);
    for named in [None, Some("0.1.0"), Some(digest.as_str())] {
        let request = ActivationRequest { area: "nosuch", digest: named, why: None, force: None };
        let refused = activate(&app, "ada", request).await;
        assert!(matches!(refused, Err(AreaActionError::NoSuchArea(_))), "{named:?}: {refused:?}");
    }
    let refused = roll_back(&app, "ada", "nosuch", "x", None).await;
    assert!(matches!(refused, Err(AreaActionError::NoSuchArea(_))), "{refused:?}");
    let from_folder = roll_back(&app, "ada", "notes", "x", None).await;
    assert!(matches!(from_folder, Err(AreaActionError::NothingBefore(_))), "{from_folder:?}");
}

#[tokio::test]
async fn a_trial_ends_when_the_live_version_changes() {
    let (app, _folder, _live) = scene_live().await;
    let tried = keep(&app, next(), VersionStage::Staged).await;
    begin_trial(&app, "ada", &canary(&tried)).await.unwrap();
    assert_eq!(app.registry.snapshot().trial("notes").unwrap().version.digest, tried);
    remove(&app, "ada", "notes", None, false).await.unwrap();
    assert!(app.registry.snapshot().trial("notes").is_none());
    let nothing = stop_trial(&app, "ada", "notes", "x").await;
    assert!(matches!(nothing, Err(AreaActionError::NoTrial(_))), "{nothing:?}");
}

#[tokio::test]
async fn a_refused_file_does_not_keep_the_deployed_version_from_running() {
    let (app, _folder) = scene().await;
    let thief = manifest("ledger", vec![route("list_entries", NOTES)]);
    let refused = ComponentInstaller::install(&app, loaded(thief), Timestamp(9)).await;
    assert!(matches!(refused, Err(AreaActionError::Refused(_))), "{refused:?}");
    assert!(!app.node.is_from_file("ledger"));
    ComponentInstaller::install(&app, loaded(next()), Timestamp(9)).await.unwrap();
    assert!(app.node.is_from_file("notes"));
}

#[tokio::test]
async fn a_slow_change_of_one_area_delays_no_other() {
    let (app, _folder) = scene().await;
    let ledger = route("list_entries", "/v1/workspaces/{workspace_id}/entries");
    let slow = Manifest { collections: vec![fleet::by_author(false)], ..next() };
    let slow = keep(&app, slow, VersionStage::Staged).await;
    let quick = keep(&app, manifest("ledger", vec![ledger]), VersionStage::Staged).await;
    let live = |area: &str| app.registry.snapshot().area(area).map(|area| area.digest.clone());
    let catch_up = || tokio::time::timeout(Duration::from_secs(5), follow::catch_up(&app));
    // While a test holds the writer, no index is created.
    let mut writer = app.store.writer().await.unwrap();
    for (area, digest) in [("notes", &slow), ("ledger", &quick)] {
        go_live(&mut writer, area, digest, 0).await;
        catch_up().await.expect("it does not wait for the index").unwrap();
    }
    assert_eq!(live("ledger"), Some(quick));
    assert_ne!(live("notes"), Some(slow.clone()));
    drop(writer);
    for _ in 0..100 {
        if live("notes").as_ref() == Some(&slow) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the index was created, but the version is not live");
}

#[tokio::test]
async fn a_decision_waits_for_what_another_node_decided() {
    let (app, _folder, _) = scene_live().await;
    let shared = route("list_entries", "/v1/workspaces/{workspace_id}/entries");
    let taken = Manifest { routes: [notes().routes, vec![shared.clone()]].concat(), ..next() };
    let taken = keep(&app, taken, VersionStage::Staged).await;
    let ledger = keep(&app, manifest("ledger", vec![shared]), VersionStage::Staged).await;
    // Another node gives the route to `notes`.
    let revision = rows::area(&app, "notes").await.unwrap().desired.pointer.unwrap().revision;
    let mut writer = app.store.writer().await.unwrap();
    go_live(&mut writer, "notes", &taken, revision).await;
    drop(writer);
    let later = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        follow::catch_up(&app).await
    };
    let request = ActivationRequest { area: "ledger", ..activation(&ledger) };
    let (decided, _) = tokio::join!(activate(&app, "ada", request), later);
    let refused = decided.expect_err("both areas would have the route").to_string();
    assert!(refused.contains("list_entries"), "{refused}");
}

#[tokio::test]
async fn calls_of_a_canary_end_with_it() {
    let (app, _folder, _live) = scene_live().await;
    let (ended, mut was_ended) = mpsc::unbounded_channel();
    let code = testing::loaded(next(), Arc::new(EndedCode(ended)));
    let tried = keep_loaded(&app, code, VersionStage::Staged).await;
    let mut has_ended =
        async || tokio::time::timeout(Duration::from_secs(2), was_ended.recv()).await.is_ok();
    begin_trial(&app, "ada", &canary(&tried)).await.unwrap();
    stop_trial(&app, "ada", "notes", "it is slow").await.unwrap();
    assert!(has_ended().await, "stopped");
    begin_trial(&app, "ada", &canary(&tried)).await.unwrap();
    begin_trial(&app, "ada", &canary(&tried)).await.unwrap();
    assert!(!has_ended().await, "on trial again");
    remove(&app, "ada", "notes", None, false).await.unwrap();
    assert!(has_ended().await, "the area was removed");
}

#[tokio::test]
async fn without_a_name_the_only_version_that_waits_is_activated() {
    let (app, _folder) = scene().await;
    let nothing = || activate(&app, "ada", ActivationRequest { digest: None, ..activation("") });
    insta::assert_snapshot!(nothing().await.expect_err("none waits"));
    let live = keep(&app, notes(), VersionStage::Staged).await;
    nothing().await.unwrap();
    assert_eq!(app.registry.snapshot().area("notes").unwrap().digest, live);
    let waiting = keep(&app, next(), VersionStage::Staged).await;
    let third = Manifest { version: semver::Version::new(0, 3, 0), ..notes() };
    keep(&app, third, VersionStage::Staged).await;
    insta::assert_snapshot!(nothing().await.expect_err("two wait"));
    activate(&app, "ada", activation("0.2.0")).await.unwrap();
    assert_eq!(app.registry.snapshot().area("notes").unwrap().digest, waiting);
}

#[tokio::test]
async fn a_rollback_goes_only_to_a_version_that_was_live() {
    let (app, _folder, _live) = scene_live().await;
    keep(&app, next(), VersionStage::Staged).await;
    let back = |to| roll_back(&app, "ada", "notes", "it is slow", Some(to));
    insta::assert_snapshot!(back("0.2.0").await.expect_err("never live"));
    insta::assert_snapshot!(back("0.1.0").await.expect_err("live already"));
    insta::assert_snapshot!(back("0.9.0").await.expect_err("unknown"));
    let third = Manifest { version: semver::Version::new(0, 3, 0), ..notes() };
    let stopped = keep(&app, third, VersionStage::Staged).await;
    begin_trial(&app, "ada", &canary(&stopped)).await.unwrap();
    stop_trial(&app, "ada", "notes", "it is slow").await.unwrap();
    let refused = back("0.3.0").await;
    assert!(matches!(refused, Err(AreaActionError::NeverLive { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_version_number_is_found_as_it_is_written() {
    let (app, _folder, _live) = scene_live().await;
    let version = semver::Version::parse("1.2.0-RC1").unwrap();
    let digest = keep(&app, Manifest { version, ..notes() }, VersionStage::Staged).await;
    activate(&app, "ada", activation("1.2.0-RC1")).await.unwrap().unwrap();
    assert_eq!(app.registry.snapshot().area("notes").unwrap().digest, digest);
}

#[tokio::test]
async fn a_trial_that_runs_here_is_not_begun_again() {
    let (app, _folder, _live) = scene_live().await;
    let tried = keep(&app, next(), VersionStage::Staged).await;
    let trial = begin_trial(&app, "ada", &canary(&tried)).await.unwrap();
    let figures = || Arc::clone(&app.registry.snapshot().trial("notes").unwrap().figures);
    let seen = figures();
    // Simulates a node that reads the row while the operator's call is running.
    super::reconcile::begin_trial(&app, &trial).await.unwrap();
    assert!(Arc::ptr_eq(&seen, &figures()));
}

#[tokio::test]
async fn a_failure_to_load_a_version_on_trial_is_forgotten_with_its_trial() {
    let (app, _folder) = scene().await;
    app.node.trial_failed("notes", "c", "it does not load".into());
    let failed = || app.node.running(&app.registry.snapshot(), "notes").failed_trial;
    assert_eq!(failed().as_deref(), Some("c"));
    app.node.forget_resolved(&app.registry.snapshot(), &DesiredAreas::new());
    assert_eq!(failed(), None);
}

#[tokio::test]
async fn the_version_used_last_stays_in_memory_whatever_its_area() {
    let (app, _folder) = scene_with(|config| config.areas.warm_versions = 2).await;
    let other = manifest("ledger", vec![route("list_entries", "/v1/workspaces/{workspace_id}/x")]);
    let (first, second) = (compiled(&app, notes()), compiled(&app, next()));
    let other = compiled(&app, other);
    for version in [&first, &second, &first, &other] {
        app.node.keep_warm(version);
    }
    let is_ready =
        |version: &AreaVersion| app.node.warm(&version.manifest.name, &version.digest).is_some();
    assert_eq!([&first, &second, &other].map(|version| is_ready(version)), [true, false, true]);
    assert!(app.node.warm("notes", &other.digest).is_none(), "another area's");
}
