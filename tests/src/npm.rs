//! Packages of the npm registry that other people generate clients with: in
//! the target folder, each set installed once.

use std::path::PathBuf;

use crate::place;

/// The `node_modules` that has these packages.
///
/// # Panics
/// Where they cannot be installed, with what to do.
#[must_use]
pub fn with_packages(packages: &[&str]) -> PathBuf {
    let made = xtask::npm::with_packages(&place::tools(), packages);
    made.unwrap_or_else(|error| panic!("{error:#}"))
}
