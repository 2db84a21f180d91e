//! The area contract as Rust types and functions, generated from `wit/`. On targets other than
//! wasm32 the types are the same and the functions abort.
#![allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::uninlined_format_args,
    clippy::semicolon_if_nothing_returned,
    reason = "generated code"
)]

wit_bindgen::generate!({
    world: "batching-area",
    path: "../../wit",
    pub_export_macro: true,
    export_macro_name: "export_component",
    default_bindings_module: "area_sdk::wit",
    additional_derives: [PartialEq],
    generate_all,
});
