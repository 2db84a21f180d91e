//! The components that are swapped, and versions of them.

use std::path::Path;

use anyhow::Context as _;

use crate::bench::versions::{numbered, patched};

/// What a component of `behaves-as-marked` is marked with when it is built.
const MARK: &str = "behaves:soundly.";
/// What the area that says hello begins its answers with, when it is built.
const GREETING: &str = "Hello, ";

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

    /// One that says hello in a way of its own, and how its answers begin.
    pub(super) fn greeting(&self, number: usize) -> anyhow::Result<(Vec<u8>, String)> {
        let greeting = format!("He{number:05}");
        Ok((patched(&self.hello, GREETING, &greeting)?, greeting))
    }

    /// Support's live version under another digest.
    pub(super) fn support(&self) -> Vec<u8> {
        numbered(&self.support, 1)
    }

    /// One that behaves as this mark of eight letters says.
    pub(super) fn marked(&self, mark: &str) -> anyhow::Result<Vec<u8>> {
        patched(&self.marked, MARK, &format!("behaves:{mark}"))
    }
}
