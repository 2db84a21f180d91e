//! What is different in generation 0.1.0 (`wit/0.1.0`): `documents.count` has no
//! upper bound.

use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use super::super::bindings::assurance::area::documents::{Condition, Error, Host as _};
use super::super::host_call_recorder::HostCallRecorder;
use super::super::instance::CallState;
use super::ContractGeneration;

pub(super) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut documents = linker.instance(&ContractGeneration::V0_1.interface("documents"))?;
    documents.func_wrap_async("count", |store, question| Box::new(count(store, question)))?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Implements `count: func(collection: string, conditions: list<condition>) -> result<u64, error>`
/// of 0.1.0.
async fn count(
    mut store: StoreContextMut<'_, CallState>,
    (collection, conditions): (String, Vec<Condition>),
) -> wasmtime::Result<(Result<u64, Error>,)> {
    let mut host = HostCallRecorder(store.data_mut());
    match host.count(collection, conditions, None).await {
        Ok(count) => Ok((Ok(count),)),
        Err(refusal) => Ok((Err(host.convert_error(refusal)?),)),
    }
}
