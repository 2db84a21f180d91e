//! Pushes components to a registry.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::HeaderValue;
use oci_client::RegistryOperation;
use oci_client::manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::layout::{self, WasmConfig};
use super::{Artifact, Error, OciReference, OciRegistry};

impl OciRegistry {
    /// Pushes an artifact under the reference's tag. Returns its reference by
    /// digest. The same component, annotations and creation time always have
    /// the same digest.
    ///
    /// # Errors
    /// The reference has a digest, the artifact is not a component, or the
    /// registry does not respond or refuses.
    pub async fn push(
        &self,
        address: &OciReference,
        artifact: Artifact,
        made_at: DateTime<Utc>,
    ) -> Result<OciReference, Error> {
        if address.reference().digest().is_some() {
            return Err(Error::PushToDigest);
        }
        let layer = described(layout::LAYER, &artifact.component);
        let config = WasmConfig::of(&artifact.component, &layer, made_at)?;
        let config = self.json(address, &config)?;
        let config_described = described(layout::CONFIG, &config);
        let contents =
            [(artifact.component, layer.digest.clone()), (config, config_described.digest.clone())];
        let manifest = OciImageManifest {
            media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
            config: config_described,
            layers: vec![layer],
            annotations: Some(artifact.annotations).filter(|all| !all.is_empty()),
            ..OciImageManifest::default()
        };
        let manifest = self.json(address, &manifest)?;
        self.enter(address, RegistryOperation::Push).await?;
        for (content, digest) in contents {
            let sent = self.client.push_blob(address.reference(), content, &digest).await;
            sent.map_err(|error| self.explain(address, error))?;
        }
        let at = address.at(digest(&manifest));
        let kind = HeaderValue::from_static(OCI_IMAGE_MEDIA_TYPE);
        let named = self.client.push_manifest_raw(address.reference(), manifest, kind).await;
        named.map_err(|error| self.explain(address, error))?;
        Ok(at)
    }

    fn json(&self, address: &OciReference, value: &impl Serialize) -> Result<Bytes, Error> {
        let text = serde_json::to_vec(value);
        Ok(text.map_err(|error| self.explain(address, error.into()))?.into())
    }
}

fn described(media_type: &str, content: &[u8]) -> OciDescriptor {
    OciDescriptor {
        media_type: media_type.to_owned(),
        digest: digest(content),
        size: i64::try_from(content.len()).unwrap_or(i64::MAX),
        ..OciDescriptor::default()
    }
}

fn digest(content: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(content)))
}
