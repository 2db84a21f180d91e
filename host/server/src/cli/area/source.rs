//! Source of a command's component: a file or an OCI registry, with the publisher's signature if
//! there is one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;

use super::read_component;
use assurance_outside::oci::{OciReference, OciRegistry};
use assurance_service::app::areas::Signature;
use assurance_service::app::folder::signature_of;

/// Key of the annotation of an OCI artifact that names the component's publisher.
const PUBLISHER: &str = "vnd.workspace-assurance.area.publisher";
/// Key of the annotation of an OCI artifact with the publisher's signature, as in FILE.sig.
const SIGNATURE: &str = "vnd.workspace-assurance.area.signature";

/// Command-line arguments that select a component.
#[derive(Debug, Args)]
pub(super) struct ComponentSource {
    /// Component: a file, with its signature in FILE.sig if that exists, or an artifact as
    /// oci://REGISTRY/REPOSITORY:TAG or oci://REGISTRY/REPOSITORY@sha256:DIGEST. Uses the
    /// credentials of `docker login`.
    #[arg(value_name = "FILE")]
    place: SourceLocation,
    /// Connect to a registry on another machine without TLS.
    #[arg(long)]
    plain_http: bool,
}

#[derive(Clone, Debug)]
enum SourceLocation {
    File(PathBuf),
    Registry(OciReference),
}

/// A component that was read from a file or downloaded, with its publisher's signature if there is
/// one.
pub(super) struct FetchedComponent {
    pub(super) component: Bytes,
    pub(super) signature: Option<Signature>,
    /// Reference by digest of the OCI artifact that contained the component; `None` if the
    /// component came from a file.
    pub(super) artifact: Option<OciReference>,
}

impl ComponentSource {
    /// Returns the default name of the area: the name of the component's file or repository, with
    /// `_` for `-`.
    pub(super) fn area(&self) -> anyhow::Result<String> {
        let name = match &self.place {
            SourceLocation::File(file) => file.file_stem().and_then(|stem| stem.to_str()),
            SourceLocation::Registry(address) => Some(address.name()),
        };
        let name = name.context("the file has no name an area could have; give it with --area")?;
        Ok(name.replace('-', "_"))
    }

    /// Returns the folder of the component's file; `None` if it comes from a registry.
    pub(super) fn folder(&self) -> Option<&Path> {
        match &self.place {
            SourceLocation::File(file) => match file.parent() {
                Some(folder) if folder.as_os_str().is_empty() => Some(Path::new(".")),
                folder => folder,
            },
            SourceLocation::Registry(_) => None,
        }
    }

    /// Reads or downloads the component, of at most `most_bytes` bytes.
    pub(super) async fn fetch(&self, most_bytes: u64) -> anyhow::Result<FetchedComponent> {
        match &self.place {
            SourceLocation::File(file) => Ok(FetchedComponent {
                component: read_component(file)?.into(),
                signature: signature(file)?,
                artifact: None,
            }),
            SourceLocation::Registry(address) => {
                let registry = OciRegistry::of(address, self.plain_http)?;
                let (artifact, at) = registry.pull(address, most_bytes).await?;
                let signature = signature_in(&artifact.annotations);
                Ok(FetchedComponent {
                    component: artifact.component,
                    signature,
                    artifact: Some(at),
                })
            }
        }
    }
}

impl FromStr for SourceLocation {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if OciReference::is_meant(text) {
            return Ok(Self::Registry(text.parse()?));
        }
        Ok(Self::File(text.into()))
    }
}

/// Reads the signature file of a component; `None` if it does not exist.
pub(super) fn signature(component: &Path) -> anyhow::Result<Option<Signature>> {
    let file = signature_of(component);
    match std::fs::read(&file) {
        Ok(text) => Ok(Some(Signature::read(&text).with_context(|| file.display().to_string())?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| file.display().to_string()),
    }
}

/// Returns a signature as annotations of an OCI artifact.
pub(super) fn annotations(signature: Option<&Signature>) -> BTreeMap<String, String> {
    let pairs = signature.map(|Signature { publisher, signature }| {
        [(PUBLISHER.to_owned(), publisher.clone()), (SIGNATURE.to_owned(), signature.clone())]
    });
    pairs.into_iter().flatten().collect()
}

fn signature_in(annotations: &BTreeMap<String, String>) -> Option<Signature> {
    let publisher = annotations.get(PUBLISHER)?.clone();
    Some(Signature { publisher, signature: annotations.get(SIGNATURE)?.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_travels_as_annotations() {
        let sent = Signature { publisher: "us".to_owned(), signature: "c2ln".to_owned() };
        assert_eq!(signature_in(&annotations(Some(&sent))).unwrap().publisher, "us");
        assert!(annotations(None).is_empty());
        assert!(signature_in(&BTreeMap::new()).is_none());
    }

    #[test]
    fn an_area_is_called_as_its_file_or_its_repository() {
        for (place, expected) in [
            ("target/areas/control-room.wasm", "control_room"),
            ("oci://localhost:5000/acme/control-room:1.0", "control_room"),
        ] {
            let source = ComponentSource { place: place.parse().unwrap(), plain_http: false };
            assert_eq!(source.area().unwrap(), expected);
        }
        assert!("oci://notes".parse::<SourceLocation>().is_err());
    }
}
