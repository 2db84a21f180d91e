//! Fixtures that the tests of several modules use.

use std::sync::Arc;

use tempfile::TempDir;

use assurance_core::config::Config;
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::manifest::Manifest;
use assurance_core::domain::time::Timestamp;
use assurance_core::domain::trial::{Trial, TrialMode, TrialShare, TrialState};
use assurance_runtime::LoadedArea;
use assurance_work::{AreaCode, StoredReply};

/// Returns a loaded area with this manifest and code, as if its component had
/// been compiled.
pub(crate) fn loaded(manifest: Manifest, code: Arc<dyn AreaCode>) -> LoadedArea {
    LoadedArea {
        digest: format!("digest of {} {}", manifest.name, manifest.version),
        manifest,
        code,
        generation: "0.2.0",
        imports: vec![],
        compiled_in: None,
    }
}

/// Returns a test configuration with cheap password hashes and a temporary data
/// folder.
pub(crate) fn config() -> (Config, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config { data_dir: folder.path().join("data"), ..Config::default() };
    config.passwords.memory_kib = 64;
    config.passwords.iterations = 1;
    (config, folder)
}

/// Returns a running trial of this version of the area `notes`.
pub(crate) fn trial(digest: &str, mode: TrialMode) -> Trial {
    Trial {
        area: "notes".into(),
        digest: digest.into(),
        mode,
        share: TrialShare::default(),
        workspaces: [].into(),
        state: TrialState::Running,
        why: None,
        revision: 4,
        begun_at: Timestamp(11),
        begun_by: "ada".into(),
        ended_at: None,
    }
}

/// Returns the stored response to a request that created a note, with the fingerprint of sevens.
pub(crate) fn stored_reply() -> StoredReply {
    StoredReply {
        workspace: WorkspaceId::new(),
        user: UserId::new(),
        operation: "create_note".into(),
        key: "k-12345678".into(),
        fingerprint: [7; 32],
        status: 201,
        body: Some("{}".into()),
        version: Some(1),
        expires_at: Timestamp(0),
    }
}
