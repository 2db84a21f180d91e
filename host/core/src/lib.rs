//! Types of the whole host: domain, configuration, keys, signed links, budgets,
//! recordings. This crate does not depend on storage, HTTP or wasmtime.

pub mod access;
pub mod area_log;
pub mod budgets;
pub mod config;
pub mod domain;
pub mod links;
pub mod recordings;
pub mod secrets;
pub mod signing;
#[cfg(any(test, feature = "testing"))]
pub mod turns;
