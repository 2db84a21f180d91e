//! What a component wants from the host, told by its imports.

use std::collections::BTreeSet;

use wasmtime::Engine;
use wasmtime::component::Component;

use super::LoadError;
use crate::domain::manifest::{Capability, Manifest};

/// The package the host implements, and its version.
const PACKAGE: &str = "assurance:area/";
const VERSION: &str = "@0.1.0";

/// Interfaces of WASI 0.2 that an empty world stands for.
const EMPTY_WORLD: [&str; 6] =
    ["wasi:io/", "wasi:clocks/", "wasi:random/", "wasi:cli/", "wasi:filesystem/", "wasi:sockets/"];

/// A component's imports.
#[derive(Debug)]
pub(super) struct Imports {
    /// All of them, as the component names them.
    pub(super) names: Vec<String>,
    /// The capabilities among them.
    pub(super) capabilities: BTreeSet<Capability>,
    /// Whether there is any of WASI.
    pub(super) wasi: bool,
}

impl Imports {
    /// Reads them; refuses a component that wants what no host has.
    pub(super) fn of(engine: &Engine, component: &Component) -> Result<Self, LoadError> {
        let ty = component.component_type();
        let names = ty.imports(engine).map(|(name, _)| name.to_owned()).collect();
        let mut imports = Self { names, capabilities: BTreeSet::new(), wasi: false };
        for name in &imports.names {
            match origin(name)? {
                Origin::Types => {}
                Origin::Capability(capability) => drop(imports.capabilities.insert(capability)),
                Origin::Wasi => imports.wasi = true,
            }
        }
        Ok(imports)
    }

    /// A component may import only what its manifest asks for *and* its
    /// operator grants.
    pub(super) fn check(
        &self,
        manifest: &Manifest,
        granted: &BTreeSet<Capability>,
    ) -> Result<(), LoadError> {
        for capability in &self.capabilities {
            if !manifest.capabilities.contains(capability) {
                return Err(LoadError::Manifest(format!(
                    "the component imports `{0}`, but `capabilities` does not ask for it",
                    name(*capability)
                )));
            }
        }
        let wanted = self.capabilities.iter().chain(&manifest.capabilities);
        match wanted.into_iter().find(|capability| !granted.contains(capability)) {
            None => Ok(()),
            Some(missing) => Err(LoadError::MissingGrant {
                area: manifest.name.clone(),
                capability: name(*missing),
            }),
        }
    }
}

enum Origin {
    Types,
    Capability(Capability),
    Wasi,
}

fn origin(import: &str) -> Result<Origin, LoadError> {
    if EMPTY_WORLD.iter().any(|package| import.starts_with(package)) {
        return Ok(Origin::Wasi);
    }
    let ours = import.strip_prefix(PACKAGE).and_then(|rest| rest.strip_suffix(VERSION));
    match ours {
        Some("types" | "manifest") => Ok(Origin::Types),
        Some(interface) => ALL
            .into_iter()
            .find(|capability| name(*capability) == interface)
            .map(Origin::Capability)
            .ok_or_else(|| unknown(import)),
        None => Err(unknown(import)),
    }
}

fn unknown(import: &str) -> LoadError {
    LoadError::WrongWorld(format!("it imports `{import}`, which this host does not have"))
}

const ALL: [Capability; 16] = [
    Capability::Documents,
    Capability::Blobs,
    Capability::Events,
    Capability::Jobs,
    Capability::Secrets,
    Capability::Crypto,
    Capability::Directory,
    Capability::Calendar,
    Capability::Egress,
    Capability::Log,
    Capability::Malware,
    Capability::Links,
    Capability::Settings,
    Capability::Queue,
    Capability::Membership,
    Capability::Mail,
];

/// A capability's name in the contract.
fn name(capability: Capability) -> &'static str {
    match capability {
        Capability::Documents => "documents",
        Capability::Blobs => "blobs",
        Capability::Events => "events",
        Capability::Jobs => "jobs",
        Capability::Secrets => "secrets",
        Capability::Crypto => "crypto",
        Capability::Directory => "directory",
        Capability::Calendar => "calendar",
        Capability::Egress => "egress",
        Capability::Log => "log",
        Capability::Malware => "malware",
        Capability::Links => "links",
        Capability::Settings => "settings",
        Capability::Queue => "queue",
        Capability::Membership => "membership",
        Capability::Mail => "mail",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(import: &str, expected: &str) {
        let found = match origin(import) {
            Ok(Origin::Types) => "types".to_owned(),
            Ok(Origin::Wasi) => "wasi".to_owned(),
            Ok(Origin::Capability(capability)) => name(capability).to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expected), "{import}: {found}");
    }

    #[test]
    fn an_import_is_told_by_its_name() {
        check("assurance:area/types@0.1.0", "types");
        check("assurance:area/documents@0.1.0", "documents");
        check("wasi:clocks/wall-clock@0.2.6", "wasi");
    }

    #[test]
    fn what_no_host_has_is_refused_by_name() {
        check("wasi:http/outgoing-handler@0.2.0", "wasi:http/outgoing-handler@0.2.0");
        check("assurance:area/documents@0.2.0", "does not have");
        check("assurance:area/database@0.1.0", "does not have");
        check("greet", "does not have");
    }
}
