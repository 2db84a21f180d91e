//! The area contract as Rust, generated from `wit/` (`build.rs`).

#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated; wit/ documents it")]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
