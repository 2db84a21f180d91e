//! Tests of what other nodes and operators change while a node deploys, decides or serves.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::super::ServingBlocked;
use super::super::audit_trail::PendingAuditEntries;
use super::super::deploy::{DeployAction, DeployRequest, DeploymentInProgress};
use super::super::dry_run::{DryRunInProgress, DryRunReport};
use super::super::execute::{AreaActionRequest, write};
use super::super::load;
use super::super::plan::{AreaAction, activation, plan};
use super::super::state::DesiredAndRunningArea;
use super::tables::{rows, runs, state};
use super::*;
use assurance_core::domain::trial::TrialState;
use assurance_store::testing::{deployment, on_both};
use assurance_store::trials::{self, TrialEnd};
use assurance_store::{self as store, Store, TransactionAccess, Tx};

/// Returns a request to deploy an empty component.
fn deployment_of_notes() -> DeployRequest {
    DeployRequest {
        area: "notes".into(),
        component: Bytes::new(),
        signature: None,
        then: DeployAction::Activate,
        why: None,
        force: None,
    }
}

#[tokio::test]
async fn a_version_whose_capabilities_the_live_version_has_by_now_needs_no_approval() {
    let (app, _folder) = scene().await;
    let (version, received) = (compiled(&app, notes()), deployment_of_notes());
    let digest = version.digest.as_str();
    let deployment = DeploymentInProgress { app: &app, who: "ada", received: &received, digest };
    let keep = async |asks: BTreeSet<Capability>| {
        let checked = CompatibilityCheckResult { asks, ..CompatibilityCheckResult::default() };
        let mut trail = PendingAuditEntries::new(&app, "ada", "notes", None);
        deployment.keep(&version, &checked, String::new(), &mut trail).await
    };
    let refused = keep([Capability::Egress].into()).await;
    assert!(matches!(refused, Err(AreaActionError::NeedsApproval { .. })), "{refused:?}");
    keep([].into()).await.unwrap();
}

#[tokio::test]
async fn a_dry_run_reports_all_findings() {
    let (app, _folder) = scene().await;
    let live = Manifest { collections: vec![by_author(false)], ..manifest("memos", vec![]) };
    let live = compiled(&app, live);
    let plan = app.registry.plan("memos", AreaTargetState::Live(&live)).unwrap();
    app.registry.activate(plan).unwrap();
    let capabilities = vec![Capability::Egress];
    let taking = compiled(&app, Manifest { name: "memos".into(), capabilities, ..notes() });
    let (received, digest) = (deployment_of_notes(), taking.digest.clone());
    let found = DryRunReport { digest, report: None, findings: vec![] };
    let mut run = DryRunInProgress { app: &app, received: &received, found };
    run.check(&taking).await.unwrap();
    let found: Vec<String> = run.found.findings.iter().map(ToString::to_string).collect();
    let part = |at: usize, text: &str| assert!(found[at].contains(text), "{found:#?}");
    part(0, "collection notes: was removed; its documents stay");
    part(1, "`assurance area activate memos --force REASON`");
    // Two operation ids, two routes, an event, the first call.
    assert_eq!(found.len(), 8, "{found:#?}");
}

#[tokio::test]
async fn a_component_is_uploaded_without_the_lock_of_the_live_areas() {
    let (app, _folder) = scene().await;
    let (version, received) = (compiled(&app, next()), deployment_of_notes());
    let digest = version.digest.as_str();
    let deployment = DeploymentInProgress { app: &app, who: "ada", received: &received, digest };
    let mut trail = PendingAuditEntries::new(&app, "ada", "notes", None);
    let object = format!("components/{digest}.wasm");
    let uploaded = async {
        while !app.store.blobs().has(&object).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let _locked = app.installing.lock().await;
    tokio::select! {
        stored = deployment.store(&version, &mut trail) => panic!("without the lock: {stored:?}"),
        uploaded = tokio::time::timeout(Duration::from_secs(10), uploaded) => uploaded.unwrap(),
    }
}

#[tokio::test]
async fn a_withdrawn_version_that_is_live_again_is_served() {
    let (app, _folder) = scene().await;
    let (live, node) = (app.registry.snapshot(), &app.node);
    let version = live.area("notes").unwrap();
    let desired =
        |digest: &str| DesiredAreas::from([("notes".to_owned(), rows(Some(digest), None))]);
    // The version was rolled back, and the one before does not load.
    node.failed("notes", "b", "it does not load".into());
    node.staleness.set_withdrawn("notes", true);
    // Operators activate a third version, which takes long to load.
    node.forget_resolved(&live, &desired("c"));
    assert_eq!(node.admit(version), Err(ServingBlocked::Withdrawn));
    node.forget_resolved(&live, &desired(&version.digest));
    assert_eq!(node.admit(version), Ok(()));
}

/// Returns a collection with an index by author.
pub(super) fn by_author(unique: bool) -> CollectionSpec {
    CollectionSpec {
        name: "notes".into(),
        summary: String::new(),
        schema: serde_json::json!({"type": "object", "properties": {"author": {"type": "string"}}}),
        fields: vec![FieldSpec { name: "author".into(), kind: FieldKind::Text }],
        indexes: vec![IndexSpec { fields: vec!["author".into()], unique }],
        readers: vec![],
    }
}

#[tokio::test]
async fn a_shadow_gets_no_unique_index() {
    let (app, _folder) = scene().await;
    let version = compiled(&app, Manifest { collections: vec![by_author(true)], ..next() });
    for (mode, expected) in [(TrialMode::Shadow, 0), (TrialMode::Canary, 1)] {
        load::ensure_trial_collections(&app, &version, mode).await.unwrap();
        let sql = "SELECT name FROM sqlite_schema WHERE name GLOB 'index_*_u'";
        let mut reader = app.store.reader().await.unwrap();
        let unique = store_testing::rows::<(String,)>(&mut reader, sql).await;
        reader.release();
        assert_eq!(unique.len(), expected, "{mode:?}: {unique:?}");
    }
}

/// Begins a transaction that stores versions a and b of notes, and makes a live.
async fn with_versions(store: &Store) -> Tx {
    let mut tx = store.begin(TransactionAccess::WriteLocked).await.unwrap();
    for digest in ["a", "b"] {
        deployments::insert(&mut tx, &deployment(digest), "{}").await.unwrap();
    }
    go_live(&mut tx, "notes", "a", 0).await;
    tx
}

/// Returns the state of notes at a node that runs version a.
async fn seen(connection: &mut Connection) -> DesiredAndRunningArea {
    let pointer = deployments::pointer_of(connection, "notes").await.unwrap();
    let trial = trials::of(connection, "notes").await.unwrap();
    state(DesiredArea { pointer, trial }, runs("a"))
}

/// Plans a decision with this state and writes the rows.
async fn decide(
    connection: &mut Connection,
    state: &DesiredAndRunningArea,
    event: AreaAction<'_>,
) -> Result<(), store::Error> {
    let transition = plan(state, &event).unwrap().unwrap();
    let decision = AreaActionRequest { area: "notes", event, who: "ada", why: None, figures: None };
    write(connection, &decision, state, &transition).await
}

on_both! {
    async fn no_trial_begins_next_to_a_version_that_another_node_made_live(store: &Store) {
        let mut tx = with_versions(store).await;
        let seen = seen(&mut tx).await;
        go_live(&mut tx, "notes", "b", 1).await;
        let event = AreaAction::BeginTrial { request: canary("b"), who: "ada" };
        let begun = decide(&mut tx, &seen, event).await;
        assert!(matches!(begun, Err(store::Error::RunAgain)), "{begun:?}");
    }

    async fn a_canary_that_another_node_has_ended_does_not_go_live(store: &Store) {
        let mut tx = with_versions(store).await;
        let before = seen(&mut tx).await;
        let event = AreaAction::BeginTrial { request: canary("b"), who: "ada" };
        decide(&mut tx, &before, event).await.unwrap();
        let seen = seen(&mut tx).await;
        let (state, stage) = (TrialState::RolledBack, VersionStage::Withdrawn);
        let ending = TrialEnd { state, why: None, at: Timestamp(2), stage };
        let trial = seen.desired.running_trial().unwrap();
        assert!(trials::end(&mut tx, trial, &ending).await.unwrap());
        let promoted = decide(&mut tx, &seen, activation(&seen, None, None).unwrap()).await;
        assert!(matches!(promoted, Err(store::Error::RunAgain)), "{promoted:?}");
    }
}
