//! What the end-to-end tests stand on: a host started as the real binary with
//! a folder and a database of its own, clients that speak HTTP to it, and the
//! contract's field tables to hold answers against.
//!
//! `cargo xtask test` tells these tests where things are (see `place`).

pub mod answer;
pub mod artifacts;
pub mod backend;
pub mod balancer;
pub mod bucket;
pub mod clamd;
pub mod cli;
pub mod client;
pub mod contract;
pub mod envelope;
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
pub mod python;
pub mod raw;
pub mod receiver;
pub mod registry;
pub mod totp;

pub use answer::Answer;
pub use backend::Backend;
pub use balancer::Balancer;
pub use client::Client;
pub use host::{Builder, TestHost};
