//! Large content, outside the database.
//!
//! Content is written first, under a fresh name nobody can guess; the row that
//! names it comes with the transaction, and only then is it there for anyone.
//! What no row names any more, or never did, is swept later.

use std::path::Path as FilePath;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart};
use sha2::{Digest, Sha256};

use super::Store;
use super::connection::{Connection, on};
use super::error::Error;
use crate::domain::id::WorkspaceId;
use crate::domain::time::Timestamp;

/// Parts of one upload on their way at a time.
const PARTS_IN_FLIGHT: usize = 4;
/// Objects the sweep asks the database about at a time.
const SWEEP_BATCH: usize = 256;

/// Where content is kept.
#[derive(Clone, Debug)]
pub struct Blobs(Arc<dyn ObjectStore>);

/// Content that is written, and what a row says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    /// Where the content is.
    pub object: String,
    /// Bytes.
    pub size: u64,
    /// Lower-case hex.
    pub sha256: String,
}

/// Content being streamed in. Dropped before [`Upload::finish`] it leaves
/// nothing that anyone can see.
pub struct Upload {
    writer: WriteMultipart,
    object: String,
    digest: Sha256,
    size: u64,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload").field("object", &self.object).field("size", &self.size).finish()
    }
}

impl Blobs {
    /// Blobs in a local folder, each on the disk before it counts as written.
    pub(super) fn open(folder: &FilePath) -> Result<Self, Error> {
        std::fs::create_dir_all(folder).map_err(|error| Error::Blobs(Box::new(error)))?;
        let local = LocalFileSystem::new_with_prefix(folder)?;
        Ok(Self(Arc::new(local.with_fsync(true).with_automatic_cleanup(true))))
    }

    /// Writes content that is already in memory.
    pub async fn write(
        &self,
        workspace: WorkspaceId,
        area: &str,
        content: Vec<u8>,
    ) -> Result<StoredBlob, Error> {
        let blob = StoredBlob {
            object: fresh_object(workspace, area),
            size: content.len() as u64,
            sha256: hex::encode(Sha256::digest(&content)),
        };
        self.0.put(&Path::from(blob.object.as_str()), content.into()).await?;
        Ok(blob)
    }

    /// Writes a component, under its digest; where that is.
    pub async fn write_component(&self, digest: &str, content: Bytes) -> Result<String, Error> {
        let object = format!("components/{digest}.wasm");
        self.0.put(&Path::from(object.as_str()), content.into()).await?;
        Ok(object)
    }

    /// Reads a component.
    pub async fn read_component(&self, object: &str) -> Result<Bytes, Error> {
        Ok(self.0.get(&Path::from(object)).await?.bytes().await?)
    }

    /// Begins to take content in pieces.
    pub async fn upload(&self, workspace: WorkspaceId, area: &str) -> Result<Upload, Error> {
        let object = fresh_object(workspace, area);
        let upload = self.0.put_multipart(&Path::from(object.as_str())).await?;
        let writer = WriteMultipart::new(upload);
        Ok(Upload { writer, object, digest: Sha256::new(), size: 0 })
    }

    /// At most `length` bytes from `offset`; nothing at or behind the end.
    pub async fn read(&self, blob: &StoredBlob, offset: u64, length: u64) -> Result<Bytes, Error> {
        let end = blob.size.min(offset.saturating_add(length));
        if offset >= end {
            return Ok(Bytes::new());
        }
        Ok(self.0.get_range(&Path::from(blob.object.as_str()), offset..end).await?)
    }
}

impl Upload {
    /// Takes the next piece.
    pub async fn write(&mut self, piece: Bytes) -> Result<(), Error> {
        self.writer.wait_for_capacity(PARTS_IN_FLIGHT).await?;
        self.digest.update(&piece);
        self.size += piece.len() as u64;
        self.writer.put(piece);
        Ok(())
    }

    /// Bytes so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// All is written; the content is on the disk when this returns.
    pub async fn finish(self) -> Result<StoredBlob, Error> {
        self.writer.finish().await?;
        let sha256 = hex::encode(self.digest.finalize());
        Ok(StoredBlob { object: self.object, size: self.size, sha256 })
    }

    /// Throws away what was written.
    pub async fn abort(self) -> Result<(), Error> {
        Ok(self.writer.abort().await?)
    }
}

/// What the row of a name says.
pub async fn find(
    connection: &mut Connection,
    workspace: WorkspaceId,
    area: &str,
    name: &str,
) -> Result<Option<StoredBlob>, Error> {
    let row: Option<(String, i64, String)> = on!(connection, c => {
        sqlx::query_as(
            "SELECT object, size, sha256 FROM blobs \
             WHERE workspace_id = $1 AND area = $2 AND name = $3",
        )
        .bind(workspace.0)
        .bind(area.to_owned())
        .bind(name.to_owned())
        .fetch_optional(&mut *c)
        .await?
    });
    Ok(row.map(|(object, size, sha256)| StoredBlob { object, size: size.cast_unsigned(), sha256 }))
}

/// Deletes content that no row names and that was written before a moment so
/// long ago that no call can be about to name it; how much.
pub async fn sweep(store: &Store, written_before: Timestamp) -> Result<u64, Error> {
    let blobs = &store.0.blobs.0;
    let old = blobs.list(None).try_filter_map(async |object| {
        let old = object.last_modified.timestamp_micros() < written_before.0;
        Ok(old.then_some(object.location))
    });
    let mut batches = old.try_chunks(SWEEP_BATCH).boxed();
    let mut swept = 0;
    while let Some(batch) = batches.next().await {
        let batch = batch.map_err(|error| Error::from(error.1))?;
        let names: Vec<String> = batch.iter().map(ToString::to_string).collect();
        let named = named(store, &names).await?;
        for object in batch.into_iter().filter(|object| !named.contains(&object.to_string())) {
            blobs.delete(&object).await?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// Those of the objects that a row names.
async fn named(store: &Store, objects: &[String]) -> Result<Vec<String>, Error> {
    let mut connection = store.reader().await?;
    let list = serde_json::to_string(objects).unwrap_or_default();
    let named = match connection.raw() {
        super::connection::Raw::Sqlite(c) => {
            sqlx::query_scalar(
                "SELECT object FROM blobs WHERE object IN (SELECT value FROM json_each($1)) \
                 UNION ALL SELECT object FROM area_versions \
                 WHERE object IN (SELECT value FROM json_each($1))",
            )
            .bind(list)
            .fetch_all(c)
            .await?
        }
        super::connection::Raw::Postgres(c) => {
            sqlx::query_scalar(
                "SELECT object FROM blobs WHERE object = ANY($1) \
                 UNION ALL SELECT object FROM area_versions WHERE object = ANY($1)",
            )
            .bind(objects)
            .fetch_all(c)
            .await?
        }
    };
    connection.release();
    Ok(named)
}

/// 256 random bits: who does not have the row cannot name the object.
fn fresh_object(workspace: WorkspaceId, area: &str) -> String {
    let mut name = [0_u8; 32];
    rand::fill(&mut name);
    format!("{workspace}/{area}/{}", hex::encode(name))
}

impl From<object_store::Error> for Error {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => Self::NotFound,
            error => Self::Blobs(Box::new(error)),
        }
    }
}
