//! Bringing an artifact.

use futures::TryStreamExt as _;
use oci_client::RegistryOperation;
use oci_client::manifest::OciDescriptor;

use super::{Address, Artifact, Error, Registry, layout};

impl Registry {
    /// Brings an artifact of at most so many bytes; where it is by digest,
    /// whatever the address says.
    ///
    /// # Errors
    /// The registry does not answer or refuses, there is no such artifact, it
    /// is no component, too large, or not what its digests say.
    pub async fn pull(
        &self,
        address: &Address,
        most_bytes: u64,
    ) -> Result<(Artifact, Address), Error> {
        self.enter(address, RegistryOperation::Pull).await?;
        let manifest = self.client.pull_image_manifest(address.reference(), &self.auth).await;
        let (manifest, digest) = manifest.map_err(|error| self.explain(address, error))?;
        let layer = layout::layer(address, &manifest)?;
        let component = self.component(address, layer, most_bytes).await?;
        let annotations = manifest.annotations.unwrap_or_default();
        Ok((Artifact { component: component.into(), annotations }, address.at(digest)))
    }

    /// The layer's bytes, which the client holds against the layer's digest.
    async fn component(
        &self,
        address: &Address,
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
