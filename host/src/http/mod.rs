//! HTTP: the only module that knows axum or a status code.
//!
//! Every refusal, whoever gives it, becomes an answer in `problem.rs`; every
//! request, whoever answers it, passes `middleware.rs`.

pub mod admin;
mod area;
mod auth;
mod body;
mod budget;
mod caller;
mod code;
mod compressed;
mod connections;
mod context;
mod extract;
mod forms;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod head;
mod headers;
mod hints;
mod json;
mod linger;
pub mod listen;
mod middleware;
mod operations;
mod pace;
mod pages;
mod parameters;
mod problem;
mod router;
mod session;
mod standing;
mod workspaces;

pub use operations::host_operations;
pub use router::api;
