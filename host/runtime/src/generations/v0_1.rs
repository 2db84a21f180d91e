//! Generation 0.1.0 (`wit/0.1.0`). `documents.count` has no upper bound; all
//! other functions are the same as in 0.2.0.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance};

use super::super::bindings::assurance::area;
use super::super::bindings::assurance::area::documents::{Condition, Error, Host as _};
use super::super::host_call_recorder::{HostCallRecorder, RecordingLinker};
use super::super::instance::CallState;
use super::{Generation, PACKAGE};

/// Links the functions of an interface as in the current generation.
type AddToLinker = fn(
    &mut LinkerInstance<'_, CallState>,
    for<'a> fn(&'a mut CallState) -> HostCallRecorder<'a>,
) -> wasmtime::Result<()>;

/// Interfaces that are linked as in the current generation.
const UNCHANGED: [(&str, AddToLinker); 18] = [
    ("types", area::types::add_to_linker_instance::<_, RecordingLinker>),
    ("manifest", area::manifest::add_to_linker_instance::<_, RecordingLinker>),
    ("documents", area::documents::add_to_linker_instance::<_, RecordingLinker>),
    ("blobs", area::blobs::add_to_linker_instance::<_, RecordingLinker>),
    ("events", area::events::add_to_linker_instance::<_, RecordingLinker>),
    ("jobs", area::jobs::add_to_linker_instance::<_, RecordingLinker>),
    ("secrets", area::secrets::add_to_linker_instance::<_, RecordingLinker>),
    ("crypto", area::crypto::add_to_linker_instance::<_, RecordingLinker>),
    ("directory", area::directory::add_to_linker_instance::<_, RecordingLinker>),
    ("calendar", area::calendar::add_to_linker_instance::<_, RecordingLinker>),
    ("egress", area::egress::add_to_linker_instance::<_, RecordingLinker>),
    ("log", area::log::add_to_linker_instance::<_, RecordingLinker>),
    ("malware", area::malware::add_to_linker_instance::<_, RecordingLinker>),
    ("links", area::links::add_to_linker_instance::<_, RecordingLinker>),
    ("settings", area::settings::add_to_linker_instance::<_, RecordingLinker>),
    ("queue", area::queue::add_to_linker_instance::<_, RecordingLinker>),
    ("membership", area::membership::add_to_linker_instance::<_, RecordingLinker>),
    ("mail", area::mail::add_to_linker_instance::<_, RecordingLinker>),
];

pub(super) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    for (interface, add) in UNCHANGED {
        add(&mut linker.instance(&name(interface))?, |state| HostCallRecorder(state))?;
    }
    linker.allow_shadowing(true);
    let mut documents = linker.instance(&name("documents"))?;
    documents.func_wrap_async("count", |store, question| Box::new(count(store, question)))?;
    linker.allow_shadowing(false);
    Ok(())
}

fn name(interface: &str) -> String {
    format!("{PACKAGE}{interface}@{}", Generation::V0_1)
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
