//! Packages of the npm registry with client generators of other projects. Each
//! set is installed once, in the target folder.

use std::path::PathBuf;

use crate::place;

/// Returns the `node_modules` folder with these packages (`NAME@VERSION`).
///
/// # Panics
/// The packages cannot be installed; says how to fix it.
#[must_use]
pub fn with_packages(packages: &[&str]) -> PathBuf {
    let made = xtask::npm::with_packages(&place::tools(), packages);
    made.unwrap_or_else(|error| panic!("{error:#}"))
}
