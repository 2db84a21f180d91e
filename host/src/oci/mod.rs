//! Components in OCI registries, by the layout that the CNCF has published for
//! Wasm: one layer, the component, and a configuration that tells what it
//! imports and exports. The only module that knows `oci_client`.
//!
//! Invariant: what is pulled is what its manifest says, and where a digest is
//! named, the manifest is the one of that digest.

mod address;
mod credentials;
mod error;
mod layout;
mod pull;
mod push;
mod registry;

pub use self::address::Address;
pub use self::error::Error;
pub use self::registry::Registry;

use std::collections::BTreeMap;

use bytes::Bytes;

/// What is kept in a registry under one digest.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// The component.
    pub component: Bytes,
    /// What its publisher says about it, by name.
    pub annotations: BTreeMap<String, String>,
}
