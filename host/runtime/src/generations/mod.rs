//! The generations of the contract that this host supports.
//!
//! The current generation is linked by `bindings`. Each earlier one has a file
//! here with the functions that differ; all others are taken from the current
//! generation. Calls need not know the component's generation. wasmtime
//! compares types when a component is linked, so a wrong adapter makes linking
//! fail and cannot misread values.

mod v0_1;

use std::fmt;

use wasmtime::component::Linker;

use super::LoadError;
use super::instance::CallState;

/// Package of the contract, the prefix of interface names.
const PACKAGE: &str = "assurance:area/";

/// A generation of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    V0_1,
    V0_2,
}

impl Generation {
    /// All supported generations, oldest first.
    const ALL: [Self; 2] = [Self::V0_1, Self::V0_2];

    /// Current generation: that of the folder `wit/`.
    pub(super) const CURRENT: Self = Self::V0_2;

    /// Returns the version of the contract's package.
    pub(super) fn version(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1.0",
            Self::V0_2 => "0.2.0",
        }
    }

    /// Returns the generation and the interface of an import; `None` if it is
    /// not part of the contract.
    pub(super) fn of(import: &str) -> Option<Result<(Self, &str), LoadError>> {
        let (interface, version) = import.strip_prefix(PACKAGE)?.split_once('@')?;
        let spoken = Self::ALL.into_iter().find(|generation| generation.version() == version);
        Some(spoken.map(|generation| (generation, interface)).ok_or_else(|| unknown(version)))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.version())
    }
}

/// Adds the earlier generations to a linker that has the current one.
pub(super) fn add_earlier_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    v0_1::add_to_linker(linker)
}

fn unknown(version: &str) -> LoadError {
    let spoken = Generation::ALL.map(Generation::version).join(" and ");
    let newest = Generation::CURRENT.version();
    LoadError::UnknownGeneration { found: version.to_owned(), spoken, newest }
}

#[cfg(test)]
mod tests;
