//! Versions of components: the same code under another digest.

use std::path::Path;

use anyhow::Context as _;

/// What a component of `behaves-as-marked` is marked with when it is built.
const MARK: &[u8] = b"behaves:soundly.";

/// The components that are deployed.
pub(super) struct Versions {
    hello: Vec<u8>,
    marked: Vec<u8>,
    support: Vec<u8>,
}

impl Versions {
    /// From the folder of built components.
    pub(super) fn read(areas: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| {
            std::fs::read(areas.join(name)).with_context(|| format!("cannot read {name}"))
        };
        Ok(Self {
            hello: read("fixtures/hello.wasm")?,
            marked: read("fixtures/behaves-as-marked.wasm")?,
            support: read("support.wasm")?,
        })
    }

    /// A version of the area that says hello.
    pub(super) fn hello(&self, number: usize) -> Vec<u8> {
        numbered(&self.hello, number)
    }

    /// Support's live version under another digest.
    pub(super) fn support(&self) -> Vec<u8> {
        numbered(&self.support, 1)
    }

    /// One that behaves as this mark of eight letters says.
    pub(super) fn marked(&self, mark: &str) -> anyhow::Result<Vec<u8>> {
        let mut component = self.marked.clone();
        let at = component.windows(MARK.len()).position(|window| window == MARK);
        let end = at.context("behaves-as-marked.wasm has no mark")? + MARK.len();
        component[end - mark.len()..end].copy_from_slice(mark.as_bytes());
        Ok(component)
    }
}

/// The component and, after it, a custom section of its own (WebAssembly core
/// specification, 5.5.3), which means nothing.
fn numbered(component: &[u8], number: usize) -> Vec<u8> {
    let name = format!("version {number:08}");
    let mut numbered = component.to_vec();
    // The section's id, its length, the length of its name: each one byte.
    numbered.extend([0, 17, 16]);
    numbered.extend(name.as_bytes());
    numbered
}
