//! HTTP: the only module that uses axum or status codes.
//!
//! Every refusal of the host or an area becomes a response in `problem.rs`. Every request passes
//! `middleware/`.

mod access_tokens;
pub mod admin;
mod area;
mod auth;
mod bearer;
mod body;
mod budget;
mod caller;
mod client_address;
mod code;
mod compressed;
mod conditional;
mod connections;
mod context;
mod extract;
mod forms;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod head;
mod headers;
mod host_operation;
pub(crate) mod json;
pub mod listen;
mod long_arrays;
mod members;
mod middleware;
mod operations;
mod pace;
mod pages;
mod parameters;
mod path;
mod problem;
mod received_content;
mod router;
mod session;
mod workspaces;

pub use operations::{documented_operations, host_operations};
pub use router::api;
