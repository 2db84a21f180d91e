//! Components for the swap benchmark, and versions of them.

use std::path::Path;

use anyhow::Context as _;

use crate::bench::versions::{numbered, patched};

/// Mark in the built fixture `behaves-as-marked`, to be replaced by one with another behavior.
const MARK: &str = "behaves:soundly.";
/// Start of the responses of the built greeting area, to be replaced by another greeting.
const GREETING: &str = "Hello, ";

/// Versions of areas (Wasm components) that the benchmark deploys one after another.
pub(super) struct Versions {
    hello: Vec<u8>,
    marked: Vec<u8>,
    support: Vec<u8>,
}

impl Versions {
    /// Reads the built components from the folder of areas.
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

    /// Returns a version of the greeting area.
    pub(super) fn hello(&self, number: usize) -> Vec<u8> {
        numbered(&self.hello, number)
    }

    /// Returns a version with a different greeting, and that greeting.
    pub(super) fn greeting(&self, number: usize) -> anyhow::Result<(Vec<u8>, String)> {
        let greeting = format!("He{number:05}");
        Ok((patched(&self.hello, GREETING, &greeting)?, greeting))
    }

    /// Returns the live version of the area `support` with another digest.
    pub(super) fn support(&self) -> Vec<u8> {
        numbered(&self.support, 1)
    }

    /// Returns a version of the fixture with the behavior of this mark of eight letters.
    pub(super) fn marked(&self, mark: &str) -> anyhow::Result<Vec<u8>> {
        patched(&self.marked, MARK, &format!("behaves:{mark}"))
    }
}
