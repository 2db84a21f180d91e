//! Compares the linker with the WIT folder of each generation.

use std::path::Path;

use wasmtime::component::Component;
use wasmtime::{Config, Engine};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

use super::ContractGeneration;
use crate::imports::Imports;
use crate::loader::Loader;

/// Returns a component that imports every function of a generation's world.
fn wants_everything(folder: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let (package, _) = resolve.push_dir(folder).unwrap();
    let world = resolve.select_world(&[package], Some("area")).unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
}

fn check(folder: &str, generation: ContractGeneration) {
    let engine = Engine::new(Config::new().concurrency_support(false)).unwrap();
    let component = Component::from_binary(&engine, &wants_everything(folder)).unwrap();
    let imports = Imports::of(&engine, &component).unwrap();
    assert_eq!(imports.generation, generation);
    // All interfaces except `types` and `manifest`.
    assert_eq!(imports.capabilities.len() + 2, imports.names.len(), "{:?}", imports.names);
    let linked = Loader::new(engine, None).unwrap().link(&component, &imports);
    assert!(linked.is_ok(), "{generation}: {:?}", linked.err());
}

#[test]
fn all_of_the_current_generation_is_linked() {
    check("wit", ContractGeneration::CURRENT);
}

#[test]
fn all_of_0_1_0_is_linked_with_the_types_it_had() {
    check("wit/0.1.0", ContractGeneration::V0_1);
}

#[test]
fn all_of_0_2_0_is_linked_with_the_types_it_had() {
    check("wit/0.2.0", ContractGeneration::V0_2);
}
