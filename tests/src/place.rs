//! Where things are: told by `cargo xtask test` through the environment, with
//! defaults that fit a build in the ordinary target folder.

use std::path::{Path, PathBuf};

/// The `assurance` binary.
#[must_use]
pub fn binary() -> PathBuf {
    named("ASSURANCE_BIN").unwrap_or_else(|| target().join("debug/assurance"))
}

/// The folder of built areas.
#[must_use]
pub fn areas() -> PathBuf {
    named("ASSURANCE_AREAS").unwrap_or_else(|| target().join("areas"))
}

/// The folder of hostile and broken guests.
#[must_use]
pub fn fixtures() -> PathBuf {
    named("ASSURANCE_FIXTURES").unwrap_or_else(|| areas().join("fixtures"))
}

/// Real-world files and published test vectors.
#[must_use]
pub fn corpus() -> PathBuf {
    named("ASSURANCE_CORPUS").unwrap_or_else(|| repository().join("../shared/data"))
}

/// The program `docker-registry`.
#[must_use]
pub fn registry() -> PathBuf {
    named("ASSURANCE_TEST_REGISTRY").unwrap_or_else(|| "docker-registry".into())
}

/// A folder that survives from run to run.
#[must_use]
pub fn cache() -> PathBuf {
    areas().with_file_name("test-cache")
}

/// The folder that programs of other registries are installed below.
#[must_use]
pub fn tools() -> PathBuf {
    let areas = areas();
    areas.parent().map_or_else(target, Path::to_path_buf)
}

/// The repository that the tests are of.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn target() -> PathBuf {
    named("CARGO_TARGET_DIR").unwrap_or_else(|| repository().join("target"))
}
