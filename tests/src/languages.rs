//! Builds areas in other languages with the tools of their registries, as `xtask` does.

use std::path::Path;

pub use xtask::languages::NonRustLanguage;

use crate::place;

/// Builds the example area in this language; `folder` is for intermediate files.
///
/// # Errors
/// A tool is missing or cannot reach its registry.
///
/// # Panics
/// The tool fails.
pub fn example(language: NonRustLanguage, folder: &Path) -> Result<Vec<u8>, String> {
    edited_example(language, folder, |source| source)
}

/// Like [`example`], of a source that `edit` has changed.
///
/// # Errors
/// A tool is missing or cannot reach its registry.
///
/// # Panics
/// The tool fails.
pub fn edited_example(
    language: NonRustLanguage,
    folder: &Path,
    edit: impl FnOnce(String) -> String,
) -> Result<Vec<u8>, String> {
    let tool = language.tool(&place::tools()).map_err(|error| format!("{error:#}"))?;
    let component = tool.edited_component(&place::repository(), folder, edit);
    Ok(component.unwrap_or_else(|error| panic!("{language}: {error:#}")))
}
