//! Tests of files of the component folder: refused ones, and ones that run instead of a deployed
//! version.

use sha2::{Digest as _, Sha256};

use super::super::{ServingBlocked, history, overview};
use super::*;
use crate::app::folder::ComponentFolder;
use assurance_core::domain::trial::TrialState;

/// A file that is named after the area `control_room`.
const FILE: &str = "control-room.wasm";

fn write_refused(folder: &TempDir) {
    std::fs::write(folder.path().join(FILE), "no component").unwrap();
}

/// Loads the folder like a start of the host. Returns how many refused files count after a poll.
async fn refused_at_start(app: &App, folder: &TempDir) -> usize {
    ComponentFolder::load(app.clone(), folder.path().into()).await.unwrap();
    refused(app).await
}

/// Returns how many refused files count after a poll.
async fn refused(app: &App) -> usize {
    follow::catch_up(app).await.unwrap();
    app.node.load_failures().len()
}

#[tokio::test]
async fn a_refused_file_counts_until_it_is_deleted() {
    let (app, folder) = scene().await;
    write_refused(&folder);
    assert_eq!(refused_at_start(&app, &folder).await, 1);
    let file = folder.path().join(FILE);
    std::fs::write(&file, "another component").unwrap();
    assert_eq!(refused(&app).await, 1, "nothing reads it before the next start");
    let admitted = app.node.admit_unknown_path(&app.registry.snapshot());
    assert_eq!(admitted, Err(ServingBlocked::NotLoaded));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(refused(&app).await, 0);
    assert_eq!(app.node.admit_unknown_path(&app.registry.snapshot()), Ok(()));
}

#[tokio::test]
async fn changes_of_a_watched_folder_are_left_to_its_scans() {
    let (app, folder) = scene_with(|config| config.areas.watch = true).await;
    write_refused(&folder);
    assert_eq!(refused_at_start(&app, &folder).await, 1);
    std::fs::remove_file(folder.path().join(FILE)).unwrap();
    assert_eq!(refused(&app).await, 1, "a build may be about to write it again");
}

#[tokio::test]
async fn a_refused_file_counts_only_if_it_is_newer_than_the_last_decision() {
    let (app, folder) = scene().await;
    write_refused(&folder);
    assert_eq!(refused_at_start(&app, &folder).await, 1);
    let rooms = route("list_rooms", "/v1/workspaces/{workspace_id}/rooms");
    let digest = keep(&app, manifest("control_room", vec![rooms]), VersionStage::Staged).await;
    let request = ActivationRequest { area: "control_room", ..activation(&digest) };
    activate(&app, "ada", request).await.unwrap().unwrap();
    assert_eq!(refused(&app).await, 0, "a version was deployed");
    assert_eq!(refused_at_start(&app, &folder).await, 0, "and the host was restarted");
    // The time of a file's change may be some milliseconds old.
    tokio::time::sleep(Duration::from_millis(50)).await;
    write_refused(&folder);
    assert_eq!(refused_at_start(&app, &folder).await, 1, "the file is newer");
}

/// Rolls notes back. Returns the digest of the live version.
async fn back(app: &App, to: Option<&str>) -> String {
    let back = roll_back(app, "ada", "notes", "it is slow", to).await.unwrap();
    let AreaChange::Live(back) = back else { panic!("{back:?}") };
    back.now.unwrap().digest.clone()
}

#[tokio::test]
async fn a_rollback_leads_back_to_the_file_that_a_deployment_replaced() {
    let (app, _folder) = scene().await;
    let areas = app.config.areas_dir();
    std::fs::create_dir_all(&areas).unwrap();
    std::fs::write(areas.join("notes.wasm"), "notes").unwrap();
    let digest = hex::encode(Sha256::digest("notes"));
    let file = LoadedArea { digest: digest.clone(), ..loaded(notes()) };
    ComponentInstaller::install(&app, file, app.clock.now()).await.unwrap();
    let deployed = keep(&app, next(), VersionStage::Staged).await;
    activate(&app, "ada", activation(&deployed)).await.unwrap().unwrap();
    assert_eq!(back(&app, None).await, digest);
}

async fn stages(app: &App) -> Vec<(String, VersionStage)> {
    let versions = history(app, "notes", i64::MAX, 10).await.unwrap();
    versions.into_iter().map(|version| (version.digest, version.stage)).collect()
}

#[tokio::test]
async fn a_newer_file_is_live_in_the_history_until_it_is_rolled_back() {
    let (app, _folder, deployed) = scene_live().await;
    for to in [None, Some("0.1.0")] {
        let file = loaded(next());
        let built = file.digest.clone();
        ComponentInstaller::install(&app, file, app.clock.now()).await.unwrap();
        let expected = [(built, VersionStage::Live), (deployed.clone(), VersionStage::Retired)];
        assert_eq!(stages(&app).await, expected);
        let area = overview(&app).await.unwrap().remove("notes").unwrap();
        assert_eq!(area.previous.unwrap().digest, deployed);
        assert_eq!(back(&app, to).await, deployed);
        assert_eq!(stages(&app).await, [(deployed.clone(), VersionStage::Live)]);
    }
}

#[tokio::test]
async fn a_promoted_canary_is_shown_only_while_it_is_live() {
    let (app, _folder, _live) = scene_live().await;
    let tried = keep(&app, next(), VersionStage::Staged).await;
    begin_trial(&app, "ada", &canary(&tried)).await.unwrap();
    let shown = async || overview(&app).await.unwrap().remove("notes").unwrap().trial;
    activate(&app, "ada", activation(&tried)).await.unwrap().unwrap();
    assert_eq!(shown().await.unwrap().state, TrialState::Promoted);
    back(&app, None).await;
    assert_eq!(shown().await, None);
}
