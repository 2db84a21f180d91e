//! Areas in other languages, made into components by the tools of their own
//! registries: as `xtask` does it.

use std::path::Path;

pub use xtask::languages::Language;

use crate::place;

/// The example in this language; `folder` is for what it is made of.
///
/// # Errors
/// What its tool comes with is not here, or cannot reach its registry: why.
///
/// # Panics
/// Where the tool does not do what it should.
pub fn example(language: Language, folder: &Path) -> Result<Vec<u8>, String> {
    let tool = language.tool(&place::tools()).map_err(|error| format!("{error:#}"))?;
    let component = tool.component(&place::repository(), folder);
    Ok(component.unwrap_or_else(|error| panic!("{language}: {error:#}")))
}
