//! Components of the contract's WIT, for unit tests and integration tests.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

/// Returns a component that imports every function of a generation's world.
pub(crate) fn wants_everything(folder: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let (package, _) = resolve.push_dir(folder).expect("a WIT package");
    let world = resolve.select_world(&[package], Some("area")).expect("a world");
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .expect("a core module");
    ComponentEncoder::default()
        .module(&module)
        .expect("a core module")
        .encode()
        .expect("a component")
}
