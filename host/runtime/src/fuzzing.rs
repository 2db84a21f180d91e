//! Fuzz target: the checks of a component before it is compiled.

use wasmparser::{Parser, Payload};

use super::imports::Imports;
use super::parts;

const PREAMBLE: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];
/// Maximum nesting depth of the components that are built from an input.
const MOST_LEVELS: usize = 40;
/// Id of the binary section that contains a nested component.
const COMPONENT_SECTION: u8 = 4;
/// Section ids from this number on end the current component.
const END: u8 = 13;

/// Checks the input itself as a component, and a component whose sections are
/// built from the input. Returns the total length of the error messages and
/// import names, in bytes.
#[must_use]
pub fn component(mut bytes: &[u8]) -> usize {
    let raw = checked(bytes);
    raw + checked(&with_sections(&mut bytes, MOST_LEVELS))
}

fn checked(component: &[u8]) -> usize {
    let counted = parts::check(component).err().map_or(0, |complaint| complaint.len());
    let names = imports(component);
    let named: usize = names.iter().map(String::len).sum();
    let refused = Imports::read(names).err().map_or(0, |error| error.to_string().len());
    counted + named + refused
}

/// Returns the import names of the outermost component.
fn imports(component: &[u8]) -> Vec<String> {
    let (mut names, mut depth) = (Vec::new(), 0);
    for payload in Parser::new(0).parse_all(component) {
        match payload {
            Ok(Payload::Version { .. }) => depth += 1,
            Ok(Payload::End(_)) => depth -= 1,
            Ok(Payload::ComponentImportSection(reader)) if depth == 1 => {
                names.extend(reader.into_iter().flatten().map(|one| one.name.name.to_owned()));
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    names
}

/// Builds a component from the input: for each section a kind, a length and a
/// content are read, and the section gets its correct length.
fn with_sections(bytes: &mut &[u8], levels: usize) -> Vec<u8> {
    let mut component = PREAMBLE.to_vec();
    while let Some(kind) = take(bytes, 1).first().map(|byte| byte % 16) {
        match kind {
            END.. => break,
            COMPONENT_SECTION if levels > 0 => {
                let inner = with_sections(bytes, levels - 1);
                add_section(&mut component, kind, &inner);
            }
            kind => {
                let length = take(bytes, 1).first().copied().unwrap_or_default();
                add_section(&mut component, kind, take(bytes, length.into()));
            }
        }
    }
    component
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length.min(bytes.len()));
    *bytes = rest;
    taken
}

fn add_section(component: &mut Vec<u8>, kind: u8, content: &[u8]) {
    component.push(kind);
    let mut length = content.len();
    while length >= 0x80 {
        component.push(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
        length >>= 7;
    }
    component.push(u8::try_from(length).unwrap_or_default());
    component.extend(content);
}
