//! Versions of components: the same code with another digest.

use anyhow::{Context as _, ensure};

/// Returns the component with a number in an appended custom section (WebAssembly core
/// specification, 5.5.3), which changes only its digest.
pub(crate) fn numbered(component: &[u8], number: usize) -> Vec<u8> {
    let name = format!("version {number:08}");
    let mut numbered = component.to_vec();
    // The section's id, its length, and the length of its name: one byte each.
    numbered.extend([0, 17, 16]);
    numbered.extend(name.as_bytes());
    numbered
}

/// Returns the component with a text of its data replaced by one of the same length.
pub(crate) fn patched(component: &[u8], text: &str, by: &str) -> anyhow::Result<Vec<u8>> {
    ensure!(text.len() == by.len(), "{by:?} is not as long as {text:?}");
    let at = component.windows(text.len()).position(|window| window == text.as_bytes());
    let at = at.with_context(|| format!("the component has no {text:?}"))?;
    let mut patched = component.to_vec();
    patched[at..at + by.len()].copy_from_slice(by.as_bytes());
    Ok(patched)
}
