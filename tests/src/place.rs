//! Locations of files, passed by `cargo xtask test` in environment variables, with defaults for the
//! ordinary target folder.

use std::path::{Path, PathBuf};

/// Returns the `assurance` binary.
#[must_use]
pub fn binary() -> PathBuf {
    named("ASSURANCE_BIN").unwrap_or_else(|| target().join("debug/assurance"))
}

/// Returns the folder of built areas.
#[must_use]
pub fn areas() -> PathBuf {
    named("ASSURANCE_AREAS").unwrap_or_else(|| target().join("areas"))
}

/// Returns the folder of built fixture guests.
#[must_use]
pub fn fixtures() -> PathBuf {
    named("ASSURANCE_FIXTURES").unwrap_or_else(|| areas().join("fixtures"))
}

/// Returns the folder of real files and published test vectors.
#[must_use]
pub fn corpus() -> PathBuf {
    named("ASSURANCE_CORPUS").unwrap_or_else(|| repository().join("../shared/data"))
}

/// Returns the program `docker-registry`.
#[must_use]
pub fn registry() -> PathBuf {
    named("ASSURANCE_TEST_REGISTRY").unwrap_or_else(|| "docker-registry".into())
}

/// Returns the program `promtool`.
#[must_use]
pub fn promtool() -> PathBuf {
    named("ASSURANCE_TEST_PROMTOOL").unwrap_or_else(|| "promtool".into())
}

/// Returns the program `redis-server`.
#[must_use]
pub fn redis() -> PathBuf {
    named("ASSURANCE_TEST_REDIS").unwrap_or_else(|| "redis-server".into())
}

/// Returns a folder that is kept between runs.
#[must_use]
pub fn cache() -> PathBuf {
    areas().with_file_name("test-cache")
}

/// Returns the folder below which programs of other registries are installed.
#[must_use]
pub fn tools() -> PathBuf {
    let areas = areas();
    areas.parent().map_or_else(target, Path::to_path_buf)
}

/// Returns the root of the repository.
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
