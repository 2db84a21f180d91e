//! Counts the parts of a component before it is compiled. Nested components can
//! instantiate each other, so that a small file can contain billions of
//! instances, and the compiler would create them all.

use wasmparser::{
    ComponentAlias, ComponentAliasSectionReader, ComponentExportSectionReader,
    ComponentExternalKind, ComponentImportSectionReader, ComponentInstance,
    ComponentInstanceSectionReader, ComponentOuterAliasKind, ComponentTypeRef, Encoding, Instance,
    InstanceSectionReader, Parser, Payload,
};

use super::engine::MODULES_PER_COMPONENT;

/// Maximum number of instances in a component, including nested ones; more than
/// any toolchain creates.
const MAX_INSTANCES: u64 = 1_000;
/// Maximum number of definitions in a component; more than ten times as many as
/// any toolchain creates. The compiler takes some hundred bytes for each.
const MAX_DEFINITIONS: u64 = 1_000_000;
/// Maximum depth to which components are nested in a component.
const MAX_DEPTH: usize = 32;

/// Rejects a component that, with everything it instantiates, has too many
/// instances or definitions, or is nested too deep.
///
/// # Errors
/// Names the exceeded limit, or says that a nested component comes from an
/// import or an instance and cannot be counted.
pub(super) fn check(component: &[u8]) -> Result<(), String> {
    let mut levels: Vec<PartCounter> = vec![];
    for payload in Parser::new(0).parse_all(component) {
        // Invalid binaries are accepted here; the compiler rejects them.
        let Ok(payload) = payload else { return Ok(()) };
        match payload {
            Payload::Version { encoding, .. } => {
                let is_component = encoding == Encoding::Component;
                levels.push(PartCounter { is_component, ..PartCounter::default() });
            }
            Payload::End(_) => {
                let Some(ended) = levels.pop() else { return Ok(()) };
                match levels.last_mut() {
                    Some(outer) if ended.is_component => outer.components.push(ended.count),
                    Some(_) => {}
                    None => return ended.count.check(),
                }
            }
            other => note(&other, &mut levels)?,
        }
        if levels.len() > MAX_DEPTH {
            return Err(format!("its parts are nested more than {MAX_DEPTH} levels deep"));
        }
    }
    Ok(())
}

/// Number of parts of a component, including everything that it instantiates.
#[derive(Clone, Copy, Default, Debug)]
struct ComponentPartCounts {
    /// Number of instances of components and of core modules.
    instances: u64,
    /// Number of instances of core modules only.
    core_instances: u64,
    /// Number of types, imports, aliases, functions and exports.
    definitions: u64,
}

impl ComponentPartCounts {
    fn add(&mut self, other: Self) {
        self.instances = self.instances.saturating_add(other.instances);
        self.core_instances = self.core_instances.saturating_add(other.core_instances);
        self.definitions = self.definitions.saturating_add(other.definitions);
    }

    fn check(self) -> Result<(), String> {
        let limits = [
            (self.instances, MAX_INSTANCES, "instances"),
            (self.core_instances, MODULES_PER_COMPONENT.into(), "instances of core modules"),
            (self.definitions, MAX_DEFINITIONS, "definitions"),
        ];
        match limits.into_iter().find(|(count, most, _)| count > most) {
            None => Ok(()),
            Some((count, most, what)) => Err(format!(
                "with all that its parts instantiate it has {count} {what}, and at most {most} \
                 {what} are allowed; link its modules into fewer"
            )),
        }
    }
}

/// State of counting one component, or one module in it.
#[derive(Default)]
struct PartCounter {
    is_component: bool,
    /// Part counts of the components that this one can instantiate, by index.
    components: Vec<ComponentPartCounts>,
    count: ComponentPartCounts,
}

impl PartCounter {
    /// Returns the part count of a component by its index; zero if the index is
    /// invalid, which the compiler reports.
    fn component(&self, index: u32) -> ComponentPartCounts {
        self.components.get(index as usize).copied().unwrap_or_default()
    }

    fn define(&mut self, definitions: u32) {
        self.count.add(ComponentPartCounts {
            definitions: definitions.into(),
            ..ComponentPartCounts::default()
        });
    }

    fn instantiate(&mut self, reader: &ComponentInstanceSectionReader<'_>) {
        for instance in reader.clone().into_iter().flatten() {
            let (made, definitions) = match instance {
                ComponentInstance::Instantiate { component_index, args } => {
                    (self.component(component_index), args.len())
                }
                ComponentInstance::FromExports(exports) => {
                    (ComponentPartCounts::default(), exports.len())
                }
            };
            self.count.add(made);
            self.count.add(ComponentPartCounts {
                instances: 1,
                core_instances: 0,
                definitions: definitions as u64,
            });
        }
    }

    fn instantiate_core(&mut self, reader: &InstanceSectionReader<'_>) {
        for instance in reader.clone().into_iter().flatten() {
            let (core_instances, definitions) = match instance {
                Instance::Instantiate { args, .. } => (1, args.len()),
                Instance::FromExports(exports) => (0, exports.len()),
            };
            let definitions = definitions as u64;
            self.count.add(ComponentPartCounts { instances: 1, core_instances, definitions });
        }
    }

    fn alias(
        &mut self,
        reader: &ComponentAliasSectionReader<'_>,
        outer: &[Self],
    ) -> Result<(), String> {
        self.define(reader.count());
        for alias in reader.clone().into_iter().flatten() {
            let named = aliased(&alias, self, outer)?;
            self.components.extend(named);
        }
        Ok(())
    }

    fn import(&mut self, reader: &ComponentImportSectionReader<'_>) -> Result<(), String> {
        self.define(reader.count());
        let mut imports = reader.clone().into_iter().flatten();
        match imports.any(|import| matches!(import.ty, ComponentTypeRef::Component(_))) {
            true => Err(UNKNOWN_COMPONENT.to_owned()),
            false => Ok(()),
        }
    }

    fn export(&mut self, reader: &ComponentExportSectionReader<'_>) {
        self.define(reader.count());
        for export in reader.clone().into_iter().flatten() {
            if export.kind == ComponentExternalKind::Component {
                let named = self.component(export.index);
                self.components.push(named);
            }
        }
    }
}

fn note(payload: &Payload<'_>, levels: &mut [PartCounter]) -> Result<(), String> {
    let Some((level, outer)) = levels.split_last_mut() else { return Ok(()) };
    match payload {
        Payload::ComponentInstanceSection(reader) => level.instantiate(reader),
        Payload::InstanceSection(reader) => level.instantiate_core(reader),
        Payload::ComponentAliasSection(reader) => level.alias(reader, outer)?,
        Payload::ComponentImportSection(reader) => level.import(reader)?,
        Payload::ComponentExportSection(reader) => level.export(reader),
        Payload::ComponentTypeSection(reader) => level.define(reader.count()),
        Payload::CoreTypeSection(reader) => level.define(reader.count()),
        Payload::ComponentCanonicalSection(reader) => level.define(reader.count()),
        _ => {}
    }
    Ok(())
}

/// Error for a component that is imported or exported by an instance: its parts
/// cannot be counted before it is instantiated. No toolchain creates such
/// components.
const UNKNOWN_COMPONENT: &str = "a part of it takes a component from an import or from an instance; define the component \
     where it is instantiated";

/// Returns the part count of the component that an alias adds; `None` if the
/// alias is of another kind.
fn aliased(
    alias: &ComponentAlias<'_>,
    level: &PartCounter,
    outer: &[PartCounter],
) -> Result<Option<ComponentPartCounts>, String> {
    match alias {
        ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
            // `count` is the number of enclosing components to skip; 0 is the
            // component itself.
            let of = outer.iter().chain([level]).rev().nth(*count as usize);
            Ok(Some(of.map(|level| level.component(*index)).unwrap_or_default()))
        }
        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, .. } => {
            Err(UNKNOWN_COMPONENT.to_owned())
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests;
