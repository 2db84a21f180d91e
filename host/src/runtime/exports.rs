//! A component's three exports, found once.
//!
//! Bindings of the whole world would hold every export against its type at each
//! instantiation, and `describe` has the largest types of them. So all three
//! are checked while the component is loaded, and a call checks its own alone.

use wasmtime::component::{Component, ComponentExportIndex, Instance, InstancePre};
use wasmtime::component::{ComponentNamedList, Lift, Lower, TypedFunc};
use wasmtime::{Engine, Store};

use super::bindings::AreaPre;
use super::instance::CallState;

/// A linked component and where its exports are.
#[derive(Clone)]
pub(super) struct Exports {
    /// For `describe`: every export is held against its type.
    pub(super) all: AreaPre<CallState>,
    handle: ComponentExportIndex,
    run: ComponentExportIndex,
}

/// An export that is called by itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Export {
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
                // `AreaPre` has found it already.
                wasmtime::format_err!("no export named `{name}`")
            })
        };
        Ok(Self { all, handle: find("handle")?, run: find("run")? })
    }

    pub(super) fn engine(&self) -> &Engine {
        self.all.engine()
    }

    /// One export of a fresh instance.
    pub(super) async fn instantiate<P, R>(
        &self,
        export: Export,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<TypedFunc<P, R>>
    where
        P: ComponentNamedList + Lower,
        R: ComponentNamedList + Lift,
    {
        let instance: Instance = self.all.instance_pre().instantiate_async(&mut *store).await?;
        let index = match export {
            Export::Handle => &self.handle,
            Export::Run => &self.run,
        };
        instance.get_typed_func(store, index)
    }
}
