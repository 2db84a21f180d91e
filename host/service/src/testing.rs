//! Fixtures that the tests of several modules use.

use std::sync::Arc;

use tempfile::TempDir;

use assurance_core::config::{Config, ConfigSources};
use assurance_core::domain::manifest::Manifest;
use assurance_runtime::LoadedArea;
use assurance_work::AreaCode;

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
    let source = ConfigSources { without_environment: true, ..ConfigSources::default() };
    let mut config = Config::load(&source).unwrap();
    config.data_dir = folder.path().join("data");
    config.passwords.memory_kib = 64;
    config.passwords.iterations = 1;
    (config, folder)
}
