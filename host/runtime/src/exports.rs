//! A component's three exports, looked up when it is loaded.
//!
//! Bindings of the whole world would check the types of every export at each
//! instantiation, and `describe` has the largest types. So all three are
//! checked when the component is loaded, and a call checks only its own export.

use wasmtime::component::{Component, ComponentExportIndex, Instance, InstancePre};
use wasmtime::component::{ComponentNamedList, Lift, Lower, TypedFunc};
use wasmtime::{Engine, Store};

use super::bindings::AreaPre;
use super::instance::CallState;

/// A linked component with its exports.
#[derive(Clone)]
pub(super) struct Exports {
    /// Bindings for `describe`, which check all exports.
    pub(super) all: AreaPre<CallState>,
    handle: ComponentExportIndex,
    run: ComponentExportIndex,
}

/// An export that is called without the bindings of the world.
#[derive(Clone, Copy, Debug)]
pub(super) enum UntypedExport {
    Handle,
    Run,
}

impl Exports {
    pub(super) fn of(
        component: &Component,
        linked: InstancePre<CallState>,
    ) -> wasmtime::Result<Self> {
        let all = AreaPre::new(linked)?;
        let find = |name| {
            component.get_export_index(None, name).ok_or_else(|| {
                // Always found: `AreaPre` has already checked the export.
                wasmtime::format_err!("no export named `{name}`")
            })
        };
        Ok(Self { all, handle: find("handle")?, run: find("run")? })
    }

    pub(super) fn engine(&self) -> &Engine {
        self.all.engine()
    }

    /// Returns one export of a new instance.
    pub(super) async fn instantiate<P, R>(
        &self,
        export: UntypedExport,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<TypedFunc<P, R>>
    where
        P: ComponentNamedList + Lower,
        R: ComponentNamedList + Lift,
    {
        let instance: Instance = self.all.instance_pre().instantiate_async(&mut *store).await?;
        let index = match export {
            UntypedExport::Handle => &self.handle,
            UntypedExport::Run => &self.run,
        };
        instance.get_typed_func(store, index)
    }
}
