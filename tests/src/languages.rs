//! Builds areas in other languages with the tools of their registries, as `xtask` does.

use std::path::Path;

pub use xtask::languages::NonRustLanguage;

use crate::place;

/// Builds the example area in this language, of a source that `edit` has changed; `folder` is for
/// intermediate files.
///
/// # Errors
/// A tool is missing or cannot reach its registry.
///
/// # Panics
/// The tool fails.
pub fn example(
    language: NonRustLanguage,
    folder: &Path,
    edit: impl FnOnce(String) -> String,
) -> Result<Vec<u8>, String> {
    let tool = language.tool(&place::tools()).map_err(|error| format!("{error:#}"))?;
    let component = tool.component(&place::repository(), folder, edit);
    Ok(component.unwrap_or_else(|error| panic!("{language}: {error:#}")))
}
