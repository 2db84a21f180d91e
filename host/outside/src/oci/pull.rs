//! Pulls components from a registry.

use futures::TryStreamExt as _;
use oci_client::RegistryOperation;
use oci_client::manifest::OciDescriptor;

use super::{Artifact, Error, OciReference, OciRegistry, layout};

impl OciRegistry {
    /// Pulls an artifact of at most `most_bytes` bytes. Also returns its
    /// reference by digest.
    ///
    /// # Errors
    /// The registry does not respond or refuses; the artifact does not exist,
    /// is not a component, is too large, or does not match its digests.
    pub async fn pull(
        &self,
        address: &OciReference,
        most_bytes: u64,
    ) -> Result<(Artifact, OciReference), Error> {
        self.enter(address, RegistryOperation::Pull).await?;
        let manifest = self.client.pull_image_manifest(address.reference(), &self.auth).await;
        let (manifest, digest) = manifest.map_err(|error| self.explain(address, error))?;
        let layer = layout::layer(address, &manifest)?;
        let component = self.component(address, layer, most_bytes).await?;
        let annotations = manifest.annotations.unwrap_or_default();
        Ok((Artifact { component: component.into(), annotations }, address.at(digest)))
    }

    /// Returns the layer's bytes. The client has verified them against the
    /// layer's digest.
    async fn component(
        &self,
        address: &OciReference,
        layer: &OciDescriptor,
        most: u64,
    ) -> Result<Vec<u8>, Error> {
        let bytes = u64::try_from(layer.size).unwrap_or(u64::MAX);
        if bytes > most {
            return Err(Error::TooLarge { bytes, most });
        }
        let stream = self.client.pull_blob_stream(address.reference(), layer).await;
        let mut stream = stream.map_err(|error| self.explain(address, error))?;
        let mut component = Vec::new();
        while let Some(piece) =
            stream.try_next().await.map_err(|error| Error::of_stream(address, error))?
        {
            component.extend_from_slice(&piece);
            if component.len() as u64 > bytes {
                let source = "the layer is longer than its manifest says".into();
                return Err(Error::Tampered { address: address.to_string(), source });
            }
        }
        Ok(component)
    }
}
