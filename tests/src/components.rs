//! Components: built ones, and ones that are assembled byte by byte.

use std::path::Path;

use crate::operators::stamped;
use crate::place;

/// Returns a built area.
///
/// # Panics
/// It is not built; says how to build it.
#[must_use]
pub fn area(name: &str) -> Vec<u8> {
    built(&place::areas().join(name).with_extension("wasm"))
}

/// Returns a built fixture guest.
///
/// # Panics
/// It is not built; says how to build it.
#[must_use]
pub fn fixture(name: &str) -> Vec<u8> {
    built(&place::fixtures().join(name).with_extension("wasm"))
}

fn built(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap_or_else(|error| {
        panic!("{}: {error}; cargo xtask guests --fixtures", file.display())
    })
}

/// Returns a version of the support area whose digest depends on `stamp`.
#[must_use]
pub fn version(stamp: u8) -> Vec<u8> {
    stamped(&area("support"), stamp)
}

/// Returns the component with each occurrence of a text replaced by one of the same length.
///
/// # Panics
/// The component does not have the text.
#[must_use]
pub fn replaced(component: &[u8], text: &str, by: &str) -> Vec<u8> {
    assert_eq!(text.len(), by.len(), "{text} {by}");
    let starts_here = |at: &usize| component[*at..].starts_with(text.as_bytes());
    let found: Vec<usize> = (0..component.len()).filter(starts_here).collect();
    assert!(!found.is_empty(), "no {text} in the component");
    let mut replaced = component.to_vec();
    for at in found {
        replaced[at..at + by.len()].copy_from_slice(by.as_bytes());
    }
    replaced
}

/// Returns a component of some hundred bytes whose parts instantiate each other, ten times on each
/// level.
#[must_use]
pub fn nested(levels: usize) -> Vec<u8> {
    let mut component = vec![0, b'a', b's', b'm', 0x0d, 0, 1, 0];
    if levels > 0 {
        component.extend(section(4, &nested(levels - 1)));
        let mut instances = vec![10];
        instances.extend([0, 0, 0].repeat(10));
        component.extend(section(5, &instances));
    }
    component
}

/// Resources of the pool that one instance of a module takes, in addition to the core instance.
#[derive(Clone, Copy, Debug)]
pub enum PoolUsage {
    /// No memory and no table.
    Nothing,
    /// A memory of one page.
    Memory,
    /// A table of one element.
    Table,
}

impl PoolUsage {
    fn module(self) -> Vec<u8> {
        let sections: &[u8] = match self {
            Self::Nothing => &[],
            Self::Memory => &[5, 3, 1, 0, 1],
            Self::Table => &[4, 4, 1, 0x70, 0, 1],
        };
        [b"\0asm\x01\0\0\0", sections].concat()
    }
}

/// Returns the component with `count` instances of one additional module.
#[must_use]
pub fn with_instances(component: &[u8], count: u8, takes: PoolUsage) -> Vec<u8> {
    let index = core_modules(component);
    let mut instances = vec![count];
    instances.extend([0, index, 0].repeat(count.into()));
    [component, &section(1, &takes.module()), &section(2, &instances)].concat()
}

/// Returns the number of core modules in a component.
fn core_modules(component: &[u8]) -> u8 {
    let (mut at, mut modules) = (8, 0);
    while let Some(id) = component.get(at) {
        modules += u8::from(*id == 1);
        let (mut length, mut shift) = (0, 0);
        loop {
            at += 1;
            length |= usize::from(component[at] & 0x7f) << shift;
            shift += 7;
            if component[at] < 0x80 {
                break;
            }
        }
        at += 1 + length;
    }
    modules
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a small section");
    let [low, high] = [length & 0x7f, length >> 7].map(|seven| seven.to_le_bytes()[0]);
    [&[id, low | 0x80, high], content].concat()
}
