//! Checks the imports of a component.

use std::collections::BTreeSet;

use wasmtime::Engine;
use wasmtime::component::Component;

use super::LoadError;
use super::generations::ContractGeneration;
use assurance_core::domain::manifest::{Capability, Manifest};

/// Interfaces of WASI 0.2 that the host links with an empty implementation.
const EMPTY_WORLD: [&str; 6] =
    ["wasi:io/", "wasi:clocks/", "wasi:random/", "wasi:cli/", "wasi:filesystem/", "wasi:sockets/"];

/// What a component imports, checked against what the host has.
#[derive(Debug)]
pub(super) struct Imports {
    /// Generation of the contract that the component was built for.
    pub(super) generation: ContractGeneration,
    /// Names of all imports of the component.
    pub(super) names: Vec<String>,
    /// Capabilities of the contract that the component imports.
    pub(super) capabilities: BTreeSet<Capability>,
    /// Whether the component imports any interface of WASI.
    pub(super) wasi: bool,
}

impl Imports {
    /// Reads a component's imports; refuses a component with an unknown import.
    pub(super) fn of(engine: &Engine, component: &Component) -> Result<Self, LoadError> {
        let ty = component.component_type();
        Self::read(ty.imports(engine).map(|(name, _)| name.to_owned()).collect())
    }

    /// Classifies a component's imports by their names; refuses unknown ones.
    pub(super) fn read(names: Vec<String>) -> Result<Self, LoadError> {
        let (mut capabilities, mut wasi, mut generation) = (BTreeSet::new(), false, None);
        for name in &names {
            let (origin, of) = origin(name)?;
            match origin {
                ImportOrigin::Types => {}
                ImportOrigin::Capability(capability) => drop(capabilities.insert(capability)),
                ImportOrigin::Wasi => wasi = true,
            }
            if let (Some(one), Some(other)) = (generation, of)
                && one != other
            {
                return Err(mixed(one, other));
            }
            generation = generation.or(of);
        }
        // A component that imports nothing of the contract works with any
        // generation.
        let generation = generation.unwrap_or(ContractGeneration::CURRENT);
        Ok(Self { generation, names, capabilities, wasi })
    }

    /// Checks that each imported capability is requested by the manifest and
    /// granted by the operator.
    pub(super) fn check(
        &self,
        manifest: &Manifest,
        granted: &BTreeSet<Capability>,
    ) -> Result<(), LoadError> {
        for capability in &self.capabilities {
            if !manifest.capabilities.contains(capability) {
                return Err(LoadError::Manifest(format!(
                    "the component imports `{0}`, but `capabilities` does not ask for it",
                    capability.name()
                )));
            }
        }
        let wanted = manifest.asks();
        let missing = wanted.iter().filter(|capability| !granted.contains(capability));
        let capabilities: Vec<_> = missing.map(|capability| capability.name()).collect();
        if capabilities.is_empty() {
            return Ok(());
        }
        Err(LoadError::MissingGrant { area: manifest.name.clone(), capabilities })
    }
}

enum ImportOrigin {
    Types,
    Capability(Capability),
    Wasi,
}

/// Returns the kind of an import, and the generation of the contract that it
/// names.
fn origin(import: &str) -> Result<(ImportOrigin, Option<ContractGeneration>), LoadError> {
    if EMPTY_WORLD.iter().any(|package| import.starts_with(package)) {
        return Ok((ImportOrigin::Wasi, None));
    }
    let (generation, interface) =
        ContractGeneration::of(import).ok_or_else(|| unknown(import))??;
    let origin = match interface {
        "types" | "manifest" => ImportOrigin::Types,
        _ => Capability::IMPORTED
            .iter()
            .find(|capability| capability.name() == interface)
            .map(|capability| ImportOrigin::Capability(*capability))
            .ok_or_else(|| unknown(import))?,
    };
    Ok((origin, Some(generation)))
}

fn mixed(one: ContractGeneration, other: ContractGeneration) -> LoadError {
    LoadError::WrongWorld(format!(
        "it imports from the generations {one} and {other} of the contract; build all of it for one"
    ))
}

fn unknown(import: &str) -> LoadError {
    LoadError::WrongWorld(format!("it imports `{import}`, which this host does not have"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(import: &str, expected: &str) {
        let found = match origin(import) {
            Ok((ImportOrigin::Types, Some(generation))) => format!("types {generation}"),
            Ok((ImportOrigin::Capability(capability), Some(generation))) => {
                format!("{} {generation}", capability.name())
            }
            Ok((ImportOrigin::Wasi, None)) => "wasi".to_owned(),
            Ok(_) => "a generation of something else".to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expected), "{import}: {found}");
    }

    #[test]
    fn the_events_of_all_areas_are_a_grant_of_their_own() {
        let manifest = serde_json::from_value(serde_json::json!({
            "name": "listener", "version": "1.0.0", "summary": "Receives all.", "routes": [],
            "collections": [], "blob_readers": [], "publishes": [], "subscriptions": ["*"],
            "jobs": [], "capabilities": [],
        }));
        let manifest: Manifest = manifest.unwrap();
        let imports = Imports::read(vec![]).unwrap();
        let refused = imports.check(&manifest, &crate::every_capability()).unwrap_err().to_string();
        assert!(refused.contains("`all_events`"), "{refused}");
        assert!(imports.check(&manifest, &BTreeSet::from([Capability::AllEvents])).is_ok());
    }

    #[test]
    fn an_import_is_told_by_its_name() {
        check("assurance:area/types@0.1.0", "types 0.1.0");
        check("assurance:area/documents@0.1.0", "documents 0.1.0");
        check("assurance:area/documents@0.2.0", "documents 0.2.0");
        check("wasi:clocks/wall-clock@0.2.6", "wasi");
    }

    #[test]
    fn what_no_host_has_is_refused_by_name() {
        check("wasi:http/outgoing-handler@0.2.0", "wasi:http/outgoing-handler@0.2.0");
        check("assurance:area/database@0.1.0", "does not have");
        check("greet", "does not have");
    }

    #[test]
    fn a_component_is_of_one_generation() {
        let read = |names: &[&str]| Imports::read(names.iter().map(|&name| name.into()).collect());
        let old = ["wasi:io/poll@0.2.0", "assurance:area/types@0.1.0", "assurance:area/log@0.1.0"];
        assert_eq!(read(&old).unwrap().generation, ContractGeneration::V0_1);
        assert_eq!(read(&[]).unwrap().generation, ContractGeneration::CURRENT);
        let both = ["assurance:area/types@0.1.0", "assurance:area/log@0.2.0"];
        insta::assert_snapshot!(read(&both).unwrap_err());
    }

    #[test]
    fn a_generation_that_is_not_spoken_is_refused_with_the_way_out() {
        insta::assert_snapshot!(origin("assurance:area/log@1.0.0").err().unwrap());
    }
}
