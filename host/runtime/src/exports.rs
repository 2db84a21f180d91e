//! A component's exports, looked up when it is loaded.
//!
//! Bindings of the whole world would check the types of every export at each
//! instantiation, and `describe` has the largest types. So they are checked when
//! the component is loaded, and a call checks only its own export.

use wasmtime::component::{Component, ComponentExportIndex, Instance, InstancePre};
use wasmtime::component::{ComponentNamedList, Lift, Lower};
use wasmtime::{Engine, Store};

use super::bindings::AreaPre;
use super::generations::ContractGeneration;
use super::instance::CallState;

/// A linked component and the positions of its exports.
#[derive(Clone)]
pub(super) struct Exports {
    /// Bindings for `describe`, which check all exports.
    pub(super) all: AreaPre<CallState>,
    handle: ComponentExportIndex,
    run: ComponentExportIndex,
    batches: Option<BatchExports>,
}

/// The exports of an area that runs several jobs in one call.
#[derive(Clone)]
struct BatchExports {
    kinds: ComponentExportIndex,
    run: ComponentExportIndex,
}

/// An export of an area's component, other than `describe`.
#[derive(Clone, Copy, Debug)]
pub(super) enum AreaExport {
    Handle,
    Run,
    /// `kinds` of the interface `batches`, which a component need not export.
    Batches,
    /// `run` of the interface `batches`, which a component need not export.
    RunBatch,
}

impl Exports {
    pub(super) fn of(
        component: &Component,
        linked: InstancePre<CallState>,
    ) -> wasmtime::Result<Self> {
        let all = AreaPre::new(linked)?;
        let index = |name: &str| component.get_export_index(None, name);
        let find = |name| {
            // Always found: `AreaPre` has already checked the export.
            index(name).ok_or_else(|| wasmtime::format_err!("no export named `{name}`"))
        };
        let batches = index(&ContractGeneration::V0_3.interface("batches")).and_then(|batches| {
            let function = |name| component.get_export_index(Some(&batches), name);
            Some(BatchExports { kinds: function("kinds")?, run: function("run")? })
        });
        Ok(Self { all, handle: find("handle")?, run: find("run")?, batches })
    }

    /// Returns whether the component exports what a batch of jobs needs.
    pub(super) fn has_batches(&self) -> bool {
        self.batches.is_some()
    }

    pub(super) fn engine(&self) -> &Engine {
        self.all.engine()
    }

    /// Creates an instance of the component, calls one of its exports and returns
    /// its result.
    pub(super) async fn call<P, R>(
        &self,
        export: AreaExport,
        store: &mut Store<CallState>,
        arguments: P,
    ) -> wasmtime::Result<R>
    where
        P: ComponentNamedList + Lower,
        (R,): ComponentNamedList + Lift + 'static,
    {
        let instance: Instance = self.all.instance_pre().instantiate_async(&mut *store).await?;
        let index = match export {
            AreaExport::Handle => Some(&self.handle),
            AreaExport::Run => Some(&self.run),
            AreaExport::Batches => self.batches.as_ref().map(|batches| &batches.kinds),
            AreaExport::RunBatch => self.batches.as_ref().map(|batches| &batches.run),
        };
        let index = index.ok_or_else(|| wasmtime::format_err!("no export {export:?}"))?;
        let function = instance.get_typed_func::<P, (R,)>(&mut *store, index)?;
        let (result,) = function.call_async(store, arguments).await?;
        Ok(result)
    }
}
