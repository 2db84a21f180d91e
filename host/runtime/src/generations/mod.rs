//! The generations of the contract that this host supports.
//!
//! The current generation is linked by `bindings`. An earlier one takes its
//! functions from the current generation, except for those in its file here.
//! Calls need not know the component's generation. wasmtime compares types when
//! a component is linked, so a wrong adapter makes linking fail and cannot
//! misread values.

mod v0_1;

use std::fmt;

use wasmtime::component::{Linker, LinkerInstance};

use super::LoadError;
use super::bindings::assurance::area;
use super::host_call_recorder::{HasHostCallRecorder, HostCallRecorder};
use super::instance::CallState;

/// Name of the contract's WIT package, with which interface names begin.
const PACKAGE: &str = "assurance:area/";

/// A generation of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContractGeneration {
    V0_1,
    V0_2,
    V0_3,
}

impl ContractGeneration {
    /// All supported generations of the contract, oldest first.
    const ALL: [Self; 3] = [Self::V0_1, Self::V0_2, Self::V0_3];

    /// Current generation of the contract: that of the folder `wit/`.
    pub(super) const CURRENT: Self = Self::V0_3;

    /// Returns the version of the contract's package in this generation.
    pub(super) fn version(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1.0",
            Self::V0_2 => "0.2.0",
            Self::V0_3 => "0.3.0",
        }
    }

    /// Returns the full name of an interface of this generation, for example
    /// `assurance:area/documents@0.3.0`.
    pub(super) fn interface(self, name: &str) -> String {
        format!("{PACKAGE}{name}@{self}")
    }

    /// Returns the generation and the interface that an import names; `None` if
    /// it is not part of the contract. The error is for an unsupported
    /// generation.
    pub(super) fn of(import: &str) -> Option<Result<(Self, &str), LoadError>> {
        let (interface, version) = import.strip_prefix(PACKAGE)?.split_once('@')?;
        let spoken = Self::ALL.into_iter().find(|generation| generation.version() == version);
        Some(spoken.map(|generation| (generation, interface)).ok_or_else(|| unknown(version)))
    }
}

impl fmt::Display for ContractGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.version())
    }
}

/// Function that adds the host functions of one interface, as in the current
/// generation, to a linker.
type AddToLinker = fn(
    &mut LinkerInstance<'_, CallState>,
    for<'a> fn(&'a mut CallState) -> HostCallRecorder<'a>,
) -> wasmtime::Result<()>;

/// Returns interfaces of the contract with the functions of the current generation.
macro_rules! interfaces {
    ($($name:ident)+) => {
        [$((stringify!($name), area::$name::add_to_linker_instance::<_, HasHostCallRecorder>)),+]
    };
}

/// Interfaces of the earlier generations, with the functions of the current one.
const INTERFACES: [(&str, AddToLinker); 18] = interfaces! {
    types manifest documents blobs events jobs secrets crypto directory calendar egress log malware
    links settings queue membership mail
};

/// Adds the earlier generations to a linker that has the current one.
pub(super) fn add_earlier_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    for generation in [ContractGeneration::V0_1, ContractGeneration::V0_2] {
        for (interface, add) in INTERFACES {
            let mut instance = linker.instance(&generation.interface(interface))?;
            add(&mut instance, |state| HostCallRecorder(state))?;
        }
    }
    v0_1::add_to_linker(linker)
}

fn unknown(version: &str) -> LoadError {
    let [first @ .., last] = ContractGeneration::ALL.map(ContractGeneration::version);
    let spoken = format!("{} and {last}", first.join(", "));
    let newest = ContractGeneration::CURRENT.version();
    LoadError::UnknownGeneration { found: version.to_owned(), spoken, newest }
}

#[cfg(test)]
mod tests;
