//! Streamed uploads. Only a few parts are in memory at a time, and the content
//! is not visible before it is complete.

use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt as _;

use super::super::error::Error;
use super::{StoredBlob, error};

/// Size of one part of a multipart upload; smaller content is written in one
/// request. S3 services accept no smaller parts, and some require equal sizes.
const PART_BYTES: usize = 5 << 20;
/// Maximum number of parts of an upload that are sent concurrently.
const PARTS_IN_FLIGHT: usize = 4;

/// A streamed upload of one object to the blob store. Dropping it before
/// [`Upload::finish`] aborts it in the background and leaves nothing behind.
pub struct Upload {
    /// Writer to the blob store; `None` once the upload is complete.
    writer: Option<BufWriter>,
    object: String,
    digest: Sha256,
    size: u64,
}

impl Upload {
    pub(super) fn begin(objects: Arc<dyn ObjectStore>, object: String) -> Self {
        let path = Path::from(object.as_str());
        let writer = BufWriter::with_capacity(objects, path, PART_BYTES)
            .with_max_concurrency(PARTS_IN_FLIGHT);
        Self { writer: Some(writer), object, digest: Sha256::new(), size: 0 }
    }

    /// Writes the next chunk of the uploaded content.
    pub async fn write(&mut self, piece: Bytes) -> Result<(), Error> {
        self.digest.update(&piece);
        self.size += piece.len() as u64;
        match &mut self.writer {
            Some(writer) => Ok(writer.put(piece).await?),
            None => Ok(()),
        }
    }

    /// Returns the number of bytes written so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Completes the upload. The content is durable when this returns.
    pub async fn finish(mut self) -> Result<StoredBlob, Error> {
        if let Some(mut writer) = self.writer.take() {
            // Continues if the caller is cancelled: a complete object can be
            // swept later, but parts of an incomplete one would remain.
            let finished = tokio::spawn(async move { writer.shutdown().await });
            let finished = finished.await.map_err(std::io::Error::other).flatten();
            finished.map_err(|failed| error::of_writer(&failed))?;
        }
        let (object, digest) = (std::mem::take(&mut self.object), std::mem::take(&mut self.digest));
        Ok(StoredBlob { object, size: self.size, sha256: hex::encode(digest.finalize()) })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let Some(mut writer) = self.writer.take() else { return };
        // Without a runtime, the process is exiting.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Err(error) = writer.abort().await {
                let error = Error::from(error);
                tracing::warn!(%error, "cannot abort an upload; its parts stay in the blob store");
            }
        });
    }
}
