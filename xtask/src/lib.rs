//! What the end-to-end tests do in the same way as these tasks: run programs,
//! and make components of areas that are not written in Rust.

pub mod languages;
pub mod process;
pub mod python;
