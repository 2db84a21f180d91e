//! Generation 0.1.0 (`wit/0.1.0`): `documents.count` had no bound. All else is
//! as in 0.2.0.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance};

use super::super::bindings::assurance::area;
use super::super::bindings::assurance::area::documents::{Condition, Error, Host as _};
use super::super::instance::CallState;
use super::super::transcript::{Transcribed, Transcriber};
use super::{Generation, PACKAGE};

/// Links an interface's functions as the current generation has them.
type Add = fn(
    &mut LinkerInstance<'_, CallState>,
    for<'a> fn(&'a mut CallState) -> Transcriber<'a>,
) -> wasmtime::Result<()>;

/// Everything, as it is now; what was otherwise is put in its place below.
const AS_NOW: [(&str, Add); 18] = [
    ("types", area::types::add_to_linker_instance::<_, Transcribed>),
    ("manifest", area::manifest::add_to_linker_instance::<_, Transcribed>),
    ("documents", area::documents::add_to_linker_instance::<_, Transcribed>),
    ("blobs", area::blobs::add_to_linker_instance::<_, Transcribed>),
    ("events", area::events::add_to_linker_instance::<_, Transcribed>),
    ("jobs", area::jobs::add_to_linker_instance::<_, Transcribed>),
    ("secrets", area::secrets::add_to_linker_instance::<_, Transcribed>),
    ("crypto", area::crypto::add_to_linker_instance::<_, Transcribed>),
    ("directory", area::directory::add_to_linker_instance::<_, Transcribed>),
    ("calendar", area::calendar::add_to_linker_instance::<_, Transcribed>),
    ("egress", area::egress::add_to_linker_instance::<_, Transcribed>),
    ("log", area::log::add_to_linker_instance::<_, Transcribed>),
    ("malware", area::malware::add_to_linker_instance::<_, Transcribed>),
    ("links", area::links::add_to_linker_instance::<_, Transcribed>),
    ("settings", area::settings::add_to_linker_instance::<_, Transcribed>),
    ("queue", area::queue::add_to_linker_instance::<_, Transcribed>),
    ("membership", area::membership::add_to_linker_instance::<_, Transcribed>),
    ("mail", area::mail::add_to_linker_instance::<_, Transcribed>),
];

pub(super) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    for (interface, add) in AS_NOW {
        add(&mut linker.instance(&name(interface))?, |state| Transcriber(state))?;
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

/// `count: func(collection: string, conditions: list<condition>) -> result<u64, error>`.
async fn count(
    mut store: StoreContextMut<'_, CallState>,
    (collection, conditions): (String, Vec<Condition>),
) -> wasmtime::Result<(Result<u64, Error>,)> {
    let mut host = Transcriber(store.data_mut());
    match host.count(collection, conditions, None).await {
        Ok(count) => Ok((Ok(count),)),
        Err(refusal) => Ok((Err(host.convert_error(refusal)?),)),
    }
}
