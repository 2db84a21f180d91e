//! Code that the end-to-end tests share with these tasks: runs programs, also PostgreSQL, and builds
//! components of areas that are not written in Rust.

pub mod cluster;
pub mod languages;
pub mod packages;
pub mod process;
