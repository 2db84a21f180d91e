//! The Wasm OCI artifact layout: media types, and the configuration that lists
//! what a component imports and exports.
//!
//! <https://tag-runtime.cncf.io/wgs/wasm/deliverables/wasm-oci-artifact/>

use chrono::{DateTime, SecondsFormat, Utc};
use oci_client::manifest::{OciDescriptor, OciImageManifest};
use serde::Serialize;
use wasmparser::{BinaryReaderError, Encoding, Parser, Payload};

use super::{Error, OciReference};

/// Media type of an artifact's configuration.
pub(super) const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// Media type of an artifact's only layer, the component.
pub(super) const LAYER: &str = "application/wasm";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WasmConfig {
    created: String,
    architecture: &'static str,
    /// Value of `os` that the Wasm OCI artifact layout prescribes for
    /// components.
    os: &'static str,
    layer_digests: Vec<String>,
    component: WasmInterfaces,
}

/// Names of a component's exports and imports.
#[derive(Debug, Default, Serialize, PartialEq, Eq)]
struct WasmInterfaces {
    exports: Vec<String>,
    imports: Vec<String>,
}

impl WasmConfig {
    /// Creates the artifact configuration for a component from its bytes, its
    /// layer, and its creation time.
    pub(super) fn of(
        component: &[u8],
        layer: &OciDescriptor,
        made_at: DateTime<Utc>,
    ) -> Result<Self, Error> {
        Ok(Self {
            created: made_at.to_rfc3339_opts(SecondsFormat::Secs, true),
            architecture: "wasm",
            os: "wasip2",
            layer_digests: vec![layer.digest.clone()],
            component: interfaces(component)?,
        })
    }
}

/// Returns the component's layer from an artifact's manifest; an error unless
/// the manifest follows the Wasm OCI artifact layout, with one layer.
pub(super) fn layer<'a>(
    address: &OciReference,
    manifest: &'a OciImageManifest,
) -> Result<&'a OciDescriptor, Error> {
    let other = |what: String| Error::OtherKind { address: address.to_string(), what };
    if manifest.config.media_type != CONFIG {
        return Err(other(format!("its configuration is {}", manifest.config.media_type)));
    }
    let [layer] = &manifest.layers[..] else {
        return Err(other(format!("it has {} layers instead of one", manifest.layers.len())));
    };
    if layer.media_type != LAYER {
        return Err(other(format!("its layer is {}", layer.media_type)));
    }
    Ok(layer)
}

fn interfaces(component: &[u8]) -> Result<WasmInterfaces, Error> {
    let refused = |error: BinaryReaderError| Error::NoComponent(error.to_string());
    let mut found = WasmInterfaces::default();
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(refused)? {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                return Err(Error::NoComponent("it is a core module".to_owned()));
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(imports) if depth == 0 => {
                for import in imports {
                    found.imports.push(import.map_err(refused)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(exports) if depth == 0 => {
                for export in exports {
                    found.exports.push(export.map_err(refused)?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_component_is_told_apart() {
        let module = b"\0asm\x01\0\0\0";
        let text = interfaces(module).unwrap_err().to_string();
        assert!(text.contains("core module"), "{text}");
        assert!(interfaces(b"%PDF-1.7").unwrap_err().to_string().contains("magic"));
        let empty = b"\0asm\x0d\0\x01\0";
        assert_eq!(interfaces(empty).unwrap(), WasmInterfaces::default());
    }

    #[test]
    fn only_the_layout_is_taken() {
        let address: OciReference = "oci://localhost:5000/notes:1".parse().unwrap();
        let of = |media_type: &str| OciDescriptor {
            media_type: media_type.to_owned(),
            ..OciDescriptor::default()
        };
        for (config, layers, expected) in [
            (CONFIG, vec![LAYER], None),
            (CONFIG, vec![], Some("0 layers")),
            (CONFIG, vec![LAYER, LAYER], Some("2 layers")),
            (CONFIG, vec!["text/plain"], Some("its layer is text/plain")),
            ("application/vnd.oci.image.config.v1+json", vec![LAYER], Some("configuration is")),
        ] {
            let layers = layers.into_iter().map(of).collect();
            let manifest =
                OciImageManifest { config: of(config), layers, ..OciImageManifest::default() };
            let refused = layer(&address, &manifest).err().map(|error| error.to_string());
            assert_eq!(refused.is_some(), expected.is_some(), "{refused:?}");
            assert!(refused.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }
}
