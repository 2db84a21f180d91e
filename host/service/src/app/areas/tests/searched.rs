//! Tests of how a search finds documents that other versions wrote. On PostgreSQL, since SQLite has
//! no search pairs.

use serde_json::json;
use uuid::Uuid;

use super::fleet::by_author;
use super::*;
use assurance_core::domain::deployment::{NodeAreaReport, NodeVersionState};
use assurance_store::testing::TestStore;
use assurance_store::{Backend, nodes};

/// Returns a host on a PostgreSQL database; `None` if there is no PostgreSQL.
async fn scene_on_postgres() -> Option<(App, TempDir, TestStore)> {
    let database = store_testing::fresh(Backend::Postgres).await?;
    let url = database.settings.url.clone();
    let (app, folder) = scene_with(|config| config.database.url = Some(url.into())).await;
    Some((app, folder, database))
}

/// Returns version 0.2.0 of notes, whose authors are not searched.
fn unsearched() -> Manifest {
    Manifest { collections: vec![by_author(false)], ..next() }
}

/// Returns version 0.3.0 of notes, whose authors are searched.
fn searched() -> Manifest {
    let mut collection = by_author(false);
    collection.schema["properties"]["author"]["x-searched"] = json!({"by": "author"});
    let version = semver::Version::new(0, 3, 0);
    Manifest { version, collections: vec![collection], ..notes() }
}

async fn make_live(app: &App, digest: &str) {
    let request = ActivationRequest { force: Some("it is a test"), ..activation(digest) };
    activate(app, "ada", request).await.unwrap().unwrap();
}

/// Writes another node's report that it runs this version of notes.
async fn report(app: &App, digest: &str) {
    let node = Uuid::from_u128(1);
    let report = NodeAreaReport {
        node,
        host: "n2".into(),
        area: "notes".into(),
        digest: Some(digest.into()),
        candidate: None,
        state: NodeVersionState::Running,
        why: None,
        seen_at: app.clock.now().plus_ms(60_000),
    };
    let mut writer = app.store.writer().await.unwrap();
    nodes::report(&mut writer, node, &[report], Timestamp(0)).await.unwrap();
    writer.release();
}

/// Writes a note as a version does whose authors are not searched.
async fn write_by(app: &App, author: &str) {
    let sql = format!(
        "INSERT INTO documents (workspace_id, collection, id, version, created_at, updated_at, \
         body) VALUES ('{}', 'notes.notes', '{author}', 1, 0, 0, '{{\"author\": \"{author}\"}}')",
        Uuid::nil()
    );
    let mut writer = app.store.writer().await.unwrap();
    store_testing::execute(&mut writer, &sql).await;
    writer.release();
}

async fn texts(app: &App, sql: &str) -> Vec<String> {
    let mut reader = app.store.reader().await.unwrap();
    let rows = store_testing::rows::<(String,)>(&mut reader, sql).await;
    reader.release();
    rows.into_iter().map(|(text,)| text).collect()
}

async fn complete_fields(app: &App) -> Vec<String> {
    texts(app, "SELECT field FROM searched_fields").await
}

/// Waits until a search for authors finds these.
async fn until_found(app: &App, expected: &[&str]) {
    let mut found = Vec::new();
    for _ in 0..200 {
        found = texts(app, "SELECT key FROM search_texts ORDER BY key").await;
        if found == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{found:?} instead of {expected:?}");
}

#[tokio::test]
async fn what_a_slow_node_still_writes_is_found_when_it_runs_the_live_version() {
    let Some((app, _folder, _database)) = scene_on_postgres().await else { return };
    let old = keep(&app, unsearched(), VersionStage::Staged).await;
    let new = keep(&app, searched(), VersionStage::Staged).await;
    make_live(&app, &old).await;
    report(&app, &old).await;
    make_live(&app, &new).await;
    write_by(&app, "early").await;
    until_found(&app, &["early"]).await;
    // If this node ends now, the next one that starts fills the pairs again.
    assert!(complete_fields(&app).await.is_empty());
    write_by(&app, "late").await;
    report(&app, &new).await;
    until_found(&app, &["early", "late"]).await;
}

#[tokio::test]
async fn what_is_written_while_another_version_is_live_is_found_afterwards() {
    let Some((app, _folder, _database)) = scene_on_postgres().await else { return };
    let old = keep(&app, unsearched(), VersionStage::Staged).await;
    let new = keep(&app, searched(), VersionStage::Staged).await;
    make_live(&app, &new).await;
    let complete = async {
        while complete_fields(&app).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), complete).await.unwrap();
    make_live(&app, &old).await;
    make_live(&app, &new).await;
    // By a call of the old version that has not ended yet.
    write_by(&app, "late").await;
    until_found(&app, &["late"]).await;
}

#[tokio::test]
async fn what_the_file_before_still_writes_is_found() {
    let Some((app, _folder, _database)) = scene_on_postgres().await else { return };
    for (written_at, manifest) in [(8, unsearched()), (9, searched())] {
        let written_at = Timestamp(written_at);
        ComponentInstaller::install(&app, loaded(manifest), written_at).await.unwrap();
    }
    write_by(&app, "late").await;
    until_found(&app, &["late"]).await;
}

#[tokio::test]
async fn calls_of_a_file_end_when_another_file_replaces_it() {
    let (app, _folder) = scene().await;
    let (ended, mut was_ended) = mpsc::unbounded_channel();
    let first = testing::loaded(next(), Arc::new(EndedCode(ended)));
    ComponentInstaller::install(&app, first, Timestamp(8)).await.unwrap();
    ComponentInstaller::install(&app, loaded(notes()), Timestamp(9)).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(5), was_ended.recv()).await;
    assert_eq!(ended, Ok(Some(())));
}
