//! The generations of the contract that this host speaks.
//!
//! The current one is linked as `bindings` has it. An earlier one has a file
//! here, which says under the old names what differs and takes everything else
//! from the current one; so an old component is called as a new one is, without
//! a look at its generation. Types are compared when a component is linked: an
//! adapter that is wrong refuses it, and never misreads it.

mod v0_1;

use std::fmt;

use wasmtime::component::Linker;

use super::LoadError;
use super::instance::CallState;

/// The package of the contract, before an interface's name.
const PACKAGE: &str = "assurance:area/";

/// A generation of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    V0_1,
    V0_2,
}

impl Generation {
    /// Every one that is spoken, the oldest first.
    const ALL: [Self; 2] = [Self::V0_1, Self::V0_2];

    /// That of `wit/`.
    pub(super) const CURRENT: Self = Self::V0_2;

    /// As the contract's package is versioned.
    pub(super) fn version(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1.0",
            Self::V0_2 => "0.2.0",
        }
    }

    /// The interface of the contract that an import names, and its generation;
    /// nothing for an import that is none of the contract's.
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

/// Makes the earlier generations known to a linker that knows the current one.
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
