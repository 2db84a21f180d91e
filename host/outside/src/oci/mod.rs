//! Components in OCI registries, in the CNCF's layout for Wasm: one layer with
//! the component, and a configuration with its imports and exports. The only
//! module that uses `oci_client`.
//!
//! Invariant: pulled content matches the digests in its manifest, and the
//! manifest matches the digest in the reference, if there is one.

mod address;
mod credentials;
mod error;
mod layout;
mod pull;
mod push;
mod registry;

pub use self::address::OciReference;
pub use self::error::Error;
pub use self::registry::OciRegistry;

use std::collections::BTreeMap;

use bytes::Bytes;

/// A component in a registry, with its annotations.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// Bytes of the WebAssembly component.
    pub component: Bytes,
    /// Annotations of the artifact from its publisher, by name.
    pub annotations: BTreeMap<String, String>,
}
