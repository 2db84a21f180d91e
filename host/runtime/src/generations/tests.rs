//! Compares the known imports with the WIT folder of each generation. That all of them are linked
//! is a test of `tests/runtime.rs`: here it would compile the linker a second time.

#[path = "../../tests/contract_component/mod.rs"]
mod contract_component;

use wasmtime::component::Component;
use wasmtime::{Config, Engine};

use self::contract_component::wants_everything;
use super::ContractGeneration;
use crate::imports::Imports;

fn check(folder: &str, generation: ContractGeneration) {
    let engine = Engine::new(Config::new().concurrency_support(false)).unwrap();
    let component = Component::from_binary(&engine, &wants_everything(folder)).unwrap();
    let imports = Imports::of(&engine, &component).unwrap();
    assert_eq!(imports.generation, generation);
    // All interfaces except `types` and `manifest`.
    assert_eq!(imports.capabilities.len() + 2, imports.names.len(), "{:?}", imports.names);
}

#[test]
fn all_of_the_current_generation_is_known() {
    check("wit", ContractGeneration::CURRENT);
}

#[test]
fn all_of_0_1_0_is_known() {
    check("wit/0.1.0", ContractGeneration::V0_1);
}

#[test]
fn all_of_0_2_0_is_known() {
    check("wit/0.2.0", ContractGeneration::V0_2);
}
