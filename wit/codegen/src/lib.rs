//! Reads the contract in `wit/` for the build scripts of host and SDK, so that
//! neither repeats its lists: the capabilities, and each one's functions with
//! their Rust types.

mod types;

use std::path::Path;

use wit_parser::{InterfaceId, PackageId, Resolve, TypeDefKind, WorldItem};

/// An interface that a component may import.
#[derive(Debug)]
pub struct Capability {
    /// Name in the contract: `documents`.
    pub name: String,
    /// Name as a variant of an enum: `Documents`.
    pub variant: String,
    /// First sentence of its documentation.
    pub summary: String,
    /// Whether it declares a type `error`.
    pub has_error: bool,
    /// Its functions, in the contract's order.
    pub functions: Vec<CapabilityFunction>,
}

/// A function of a capability. Types are paths from the module of all interfaces
/// (`documents::Document`).
#[derive(Debug)]
pub struct CapabilityFunction {
    /// Name in the contract, without its interface: `get-many`.
    pub wit_name: String,
    /// Name in Rust: `get_many`.
    pub name: String,
    /// Its documentation.
    pub docs: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Type of a success.
    pub output: String,
    /// Whether it fails with the interface's `error`.
    pub fails: bool,
}

/// A parameter of a function.
#[derive(Debug)]
pub struct Parameter {
    /// Name in Rust.
    pub name: String,
    /// Type as the host receives it: `String`.
    pub owned: String,
    /// Type as a guest passes it: `&str`.
    pub borrowed: String,
}

impl CapabilityFunction {
    /// The parameters as `name: type` and as `name`, each joined by commas.
    #[must_use]
    pub fn signature(&self, type_of: impl Fn(&Parameter) -> &str) -> (String, String) {
        let typed = |one: &Parameter| format!("{}: {}", one.name, type_of(one));
        let typed: Vec<_> = self.parameters.iter().map(typed).collect();
        let names: Vec<_> = self.parameters.iter().map(|one| one.name.as_str()).collect();
        (typed.join(", "), names.join(", "))
    }
}

/// Reads the capabilities, in the order of `capability` in `wit/manifest.wit`.
/// Cargo runs the build script again when a file of the contract changes.
///
/// # Panics
/// If the contract is not valid, or if a capability is not an import of the
/// world `area`, or the reverse.
#[must_use]
pub fn capabilities() -> Vec<Capability> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut resolve = Resolve::default();
    let (package, files) = resolve.push_dir(&folder).expect("a valid contract");
    for file in files.paths() {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    let mut imports = imports(&resolve, package);
    let named = capability_names(&resolve, package).into_iter().map(|name| {
        let position = imports.iter().position(|(import, _)| *import == name);
        let position = position.unwrap_or_else(|| panic!("the world does not import {name}"));
        capability(&resolve, imports.remove(position).1)
    });
    let named = named.collect();
    assert!(imports.is_empty(), "not in `capability` of manifest.wit: {imports:?}");
    named
}

/// Writes a file that the crate includes from `OUT_DIR`.
///
/// # Panics
/// If this is not a build script.
pub fn write(file: &str, code: &str) {
    let folder = std::env::var("OUT_DIR").expect("set by cargo");
    std::fs::write(Path::new(&folder).join(file), code).expect("a folder to write to");
}

/// The interfaces with functions that the world `area` imports.
fn imports(resolve: &Resolve, package: PackageId) -> Vec<(String, InterfaceId)> {
    let world = resolve.select_world(&[package], Some("area")).expect("the world `area`");
    let imports = resolve.worlds[world].imports.values().filter_map(|item| match item {
        WorldItem::Interface { id, .. } => Some(*id),
        WorldItem::Function(_) | WorldItem::Type { .. } => None,
    });
    let callable = imports.filter(|id| !resolve.interfaces[*id].functions.is_empty());
    callable.map(|id| (resolve.interfaces[id].name.clone().unwrap_or_default(), id)).collect()
}

/// The cases of `capability` in `wit/manifest.wit`.
fn capability_names(resolve: &Resolve, package: PackageId) -> Vec<String> {
    let manifest = resolve.packages[package].interfaces["manifest"];
    let capability = resolve.interfaces[manifest].types["capability"];
    let TypeDefKind::Enum(names) = &resolve.types[capability].kind else {
        panic!("`capability` of manifest.wit is not an enum")
    };
    names.cases.iter().map(|case| case.name.clone()).collect()
}

fn capability(resolve: &Resolve, id: InterfaceId) -> Capability {
    let interface = &resolve.interfaces[id];
    let name = interface.name.clone().unwrap_or_default();
    let docs = interface.docs.contents.as_deref().unwrap_or_default().replace('\n', " ");
    Capability {
        variant: types::upper_camel_case(&name),
        summary: docs.split_inclusive(". ").next().unwrap_or_default().trim().to_owned(),
        has_error: interface.types.contains_key("error"),
        functions: interface.functions.values().map(|one| function(resolve, id, one)).collect(),
        name,
    }
}

fn function(
    resolve: &Resolve,
    id: InterfaceId,
    function: &wit_parser::Function,
) -> CapabilityFunction {
    let error = resolve.interfaces[id].types.get("error").copied();
    let (output, fails) = types::output(resolve, function.result, error);
    let parameters = function.params.iter().map(|parameter| Parameter {
        name: types::snake_case(&parameter.name),
        owned: types::owned(resolve, parameter.ty),
        borrowed: types::borrowed(resolve, parameter.ty),
    });
    CapabilityFunction {
        name: types::snake_case(&function.name),
        wit_name: function.name.clone(),
        docs: function.docs.contents.clone().unwrap_or_default(),
        parameters: parameters.collect(),
        output,
        fails,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, owned: &str, borrowed: &str, output: &str) {
        let all = capabilities();
        let named = |one: &Capability, function: &CapabilityFunction| {
            format!("{}.{}", one.name, function.wit_name) == name
        };
        let mut found = all
            .iter()
            .flat_map(|one| one.functions.iter().filter(move |function| named(one, function)));
        let function = found.next().expect("a function of the contract");
        assert_eq!(function.signature(|one| &one.owned).0, owned, "{name}");
        assert_eq!(function.signature(|one| &one.borrowed).0, borrowed, "{name}");
        assert_eq!(function.output, output, "{name}");
    }

    #[test]
    fn texts_and_lists_are_borrowed() {
        check(
            "documents.count",
            "collection: String, conditions: Vec<documents::Condition>, at_most: Option<u32>",
            "collection: &str, conditions: &[documents::Condition], at_most: Option<u32>",
            "u64",
        );
    }

    #[test]
    fn a_record_without_texts_is_passed_by_value() {
        check(
            "calendar.resolve",
            "zone: String, at: calendar::Civil",
            "zone: &str, at: calendar::Civil",
            "i64",
        );
        check("mail.send", "message: mail::Message", "message: &mail::Message", "()");
    }

    #[test]
    fn a_type_of_another_interface_is_named_by_that_one() {
        check(
            "membership.add",
            "user: String, role: types::Role",
            "user: &str, role: types::Role",
            "()",
        );
    }

    #[test]
    fn only_a_function_with_the_error_of_its_interface_fails() {
        let all = capabilities();
        let queue = all.iter().find(|one| one.name == "queue").expect("the queue");
        let fails = queue.functions.iter().map(|one| (one.name.as_str(), one.fails));
        let expected = [
            ("lanes", false),
            ("overview", true),
            ("find", true),
            ("get", false),
            ("progress_of", false),
        ];
        assert_eq!(fails.take(5).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_summary_is_one_sentence() {
        let all = capabilities();
        let documents = all.first().expect("a capability");
        assert_eq!((documents.variant.as_str(), documents.has_error), ("Documents", true));
        assert_eq!(documents.summary, "The workspace's documents.");
    }
}
