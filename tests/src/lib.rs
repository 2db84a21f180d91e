//! Infrastructure of the end-to-end tests: starts the real binary with a separate folder and
//! database, sends HTTP requests, and checks responses against the contract's field tables.
//!
//! `cargo xtask test` passes the locations of files, see `place`.

pub mod answer;
pub mod artifacts;
pub mod backend;
pub mod balancer;
pub mod bucket;
pub mod clamd;
pub mod cli;
pub mod client;
pub mod components;
pub mod contract;
pub mod envelope;
pub mod examples;
pub mod faults;
pub mod host;
pub mod hostile;
pub mod languages;
pub mod ledger;
pub mod mail_server;
pub mod model_server;
pub mod oidc;
pub mod operators;
pub mod place;
pub mod postgres;
mod process;
pub mod python;
pub mod raw;
pub mod receiver;
pub mod redis;
pub mod registry;
pub mod totp;
pub mod until;

pub use answer::Answer;
pub use backend::Backend;
pub use balancer::Balancer;
pub use client::Client;
pub use host::{Builder, TestHost};
pub use until::{until, within};
