//! How many instances a component is made of. Its parts may instantiate each
//! other, so a file of some hundred bytes can stand for billions, and the
//! compiler would make them all.

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, Encoding,
    Parser, Payload,
};

/// More than any toolchain makes: the pool has room for 40 of core modules.
const MAX_INSTANCES: u64 = 1_000;
/// Components inside of each other.
const MAX_DEPTH: usize = 32;

/// Refuses a component that would be made of too many instances.
///
/// # Errors
/// How many there are.
pub(super) fn check(component: &[u8]) -> Result<(), String> {
    let mut levels: Vec<Level> = vec![];
    let mut largest = 1;
    for payload in Parser::new(0).parse_all(component) {
        // What is not valid is the compiler's to say.
        let Ok(payload) = payload else { return Ok(()) };
        match payload {
            Payload::Version { encoding, .. } => {
                let is_component = encoding == Encoding::Component;
                levels.push(Level { is_component, ..Level::default() });
            }
            Payload::End(_) => {
                let Some(ended) = levels.pop() else { return Ok(()) };
                largest = largest.max(ended.instances);
                if let Some(outer) = levels.last_mut() {
                    if ended.is_component {
                        outer.components.push(ended.instances);
                    }
                } else if ended.instances > MAX_INSTANCES {
                    return Err(too_many(ended.instances));
                }
            }
            other => note(&other, &mut levels, largest),
        }
        if levels.len() > MAX_DEPTH {
            return Err(format!("its parts are nested more than {MAX_DEPTH} deep"));
        }
    }
    Ok(())
}

fn too_many(instances: u64) -> String {
    format!(
        "its parts instantiate each other {instances} times, and at most {MAX_INSTANCES} instances \
         are allowed; link its modules into fewer"
    )
}

/// One component that is being read, or a module in it.
#[derive(Default)]
struct Level {
    is_component: bool,
    /// Of the components that it can instantiate, by index: how many instances
    /// each stands for.
    components: Vec<u64>,
    instances: u64,
}

fn note(payload: &Payload<'_>, levels: &mut [Level], largest: u64) {
    let Some((level, outer)) = levels.split_last_mut() else { return };
    match payload {
        Payload::ComponentInstanceSection(reader) => {
            for instance in reader.clone().into_iter().flatten() {
                let ComponentInstance::Instantiate { component_index, .. } = instance else {
                    continue;
                };
                let of = level.components.get(component_index as usize).copied();
                let made = of.unwrap_or(largest).saturating_add(1);
                level.instances = level.instances.saturating_add(made);
            }
        }
        Payload::InstanceSection(reader) => {
            level.instances = level.instances.saturating_add(reader.count().into());
        }
        Payload::ComponentAliasSection(reader) => {
            for alias in reader.clone().into_iter().flatten() {
                level.components.extend(aliased(&alias, outer, largest));
            }
        }
        Payload::ComponentImportSection(reader) => {
            for import in reader.clone().into_iter().flatten() {
                if matches!(import.ty, wasmparser::ComponentTypeRef::Component(_)) {
                    level.components.push(largest);
                }
            }
        }
        Payload::ComponentExportSection(reader) => {
            for export in reader.clone().into_iter().flatten() {
                if export.kind == ComponentExternalKind::Component {
                    let of = level.components.get(export.index as usize).copied();
                    level.components.push(of.unwrap_or(largest));
                }
            }
        }
        _ => {}
    }
}

/// What an alias adds to the components that can be instantiated.
fn aliased(alias: &ComponentAlias<'_>, outer: &[Level], largest: u64) -> Option<u64> {
    match alias {
        ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
            let at = outer.len().checked_sub(*count as usize);
            let of = at.and_then(|at| outer.get(at)?.components.get(*index as usize));
            Some(of.copied().unwrap_or(largest))
        }
        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, .. } => {
            Some(largest)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREAMBLE: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];

    fn section(id: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![id];
        let mut length = content.len();
        while length >= 0x80 {
            bytes.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        bytes.extend(content);
        bytes
    }

    /// A component whose part is instantiated `wide` times at each level.
    pub(super) fn nested(levels: usize, wide: u8) -> Vec<u8> {
        let mut bytes = PREAMBLE.to_vec();
        if levels > 0 {
            bytes.extend(section(4, &nested(levels - 1, wide)));
            let mut instances = vec![wide];
            instances.extend([0, 0, 0].repeat(wide.into()));
            bytes.extend(section(5, &instances));
        }
        bytes
    }

    #[test]
    fn parts_that_instantiate_each_other_are_counted_before_they_are_made() {
        let hostile = nested(20, 10);
        assert!(hostile.len() < 1_000, "{}", hostile.len());
        let told = check(&hostile).expect_err("it is accepted");
        assert!(told.contains("at most 1000 instances"), "{told}");
        assert_eq!(check(&nested(3, 5)), Ok(()));
        assert!(check(&nested(40, 1)).is_err(), "it is nested deeper than any honest one");
    }

    #[test]
    fn what_is_no_component_is_left_to_the_compiler() {
        assert_eq!(check(b"no component"), Ok(()));
        assert_eq!(check(&PREAMBLE), Ok(()));
    }
}
