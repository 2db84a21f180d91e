//! Blobs: large content outside the database, in a folder or in a bucket that a
//! fleet shares.
//!
//! Content is written first, under a random name that cannot be guessed. It
//! becomes visible when the transaction commits the row that refers to it.
//! Content without a row is deleted later by the sweep.

mod bucket;
mod error;
mod sweep;
mod upload;

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use sha2::{Digest, Sha256};

use super::connection::{Connection, fetch_optional};
use super::error::Error;
use assurance_core::domain::id::WorkspaceId;

pub use bucket::Bucket;
pub use sweep::{discard, sweep, sweep_partial};
pub use upload::Upload;

/// Number of bytes that are hashed before the task yields to others.
const PIECE_BYTES: usize = 1 << 20;

/// Name of the object that [`Blobs::check`] writes and deletes to test access.
const CHECK_OBJECT: &str = "trial";
/// Prefix that no object of the blob store has, for a listing without a result.
const EMPTY_PREFIX: &str = "nothing";

/// Configured location of the blob store.
#[derive(Clone, Debug)]
pub enum BlobStoreLocation {
    /// A folder on this machine; created if it is missing.
    Folder(PathBuf),
    /// An existing bucket of an S3-compatible service.
    Bucket(Box<Bucket>),
}

/// The blob store: a folder or a bucket. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Blobs {
    objects: Arc<dyn ObjectStore>,
    place: Arc<BlobStoreLocation>,
}

/// Location and checksum of a written blob, as its database row has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    /// Name of the object in the blob store.
    pub object: String,
    /// Size of the content in bytes.
    pub size: u64,
    /// SHA-256 of the content, in lower-case hex.
    pub sha256: String,
}

impl Blobs {
    /// Opens the blob store: creates the folder, or a client for the bucket.
    /// Sends no request to the bucket.
    pub fn open(place: &BlobStoreLocation) -> Result<Self, Error> {
        let opened = match place {
            BlobStoreLocation::Folder(folder) => open_folder(folder),
            BlobStoreLocation::Bucket(bucket) => bucket.connect(),
        };
        let objects = opened.map_err(|failed| error::unusable(place, &failed))?;
        Ok(Self { objects, place: Arc::new(place.clone()) })
    }

    /// Checks that objects of the blob store can be listed, written and
    /// deleted.
    ///
    /// # Errors
    /// An error with the location, the problem and the fix.
    pub async fn check(&self) -> Result<(), Error> {
        self.try_out().await.map_err(|failed| error::unusable(&self.place, &failed))
    }

    async fn try_out(&self) -> object_store::Result<()> {
        let trial = Path::from(CHECK_OBJECT);
        self.objects.put(&trial, Bytes::new().into()).await?;
        self.list_nothing().await?;
        // Another host that runs the same check may have deleted the object.
        unless_missing(self.objects.delete(&trial).await).map(drop)
    }

    /// Checks that the blob store responds.
    pub async fn ping(&self) -> Result<(), Error> {
        Ok(self.list_nothing().await?)
    }

    /// Lists an empty prefix: a small request that needs access to the bucket.
    async fn list_nothing(&self) -> object_store::Result<()> {
        self.objects.list(Some(&Path::from(EMPTY_PREFIX))).next().await.transpose().map(drop)
    }

    /// Writes a blob from memory under a random name.
    pub async fn write(
        &self,
        workspace: WorkspaceId,
        area: &str,
        content: Vec<u8>,
    ) -> Result<StoredBlob, Error> {
        let mut digest = Sha256::new();
        for piece in content.chunks(PIECE_BYTES) {
            digest.update(piece);
            tokio::task::yield_now().await;
        }
        let blob = StoredBlob {
            object: fresh_object(workspace, area),
            size: content.len() as u64,
            sha256: hex::encode(digest.finalize()),
        };
        self.objects.put(&Path::from(blob.object.as_str()), content.into()).await?;
        Ok(blob)
    }

    /// Writes a component under its digest. Returns the name of the object.
    pub async fn write_component(&self, digest: &str, content: Bytes) -> Result<String, Error> {
        let object = format!("components/{digest}.wasm");
        self.objects.put(&Path::from(object.as_str()), content.into()).await?;
        Ok(object)
    }

    /// Reads a component by the name of its object. Returns [`Error::NotFound`]
    /// if there is none.
    pub async fn read_component(&self, object: &str) -> Result<Bytes, Error> {
        let found = unless_missing(self.objects.get(&Path::from(object)).await)?;
        Ok(found.ok_or(Error::NotFound)?.bytes().await?)
    }

    /// Returns whether the blob store has an object with this name.
    pub async fn has(&self, object: &str) -> Result<bool, Error> {
        self.has_path(&Path::from(object)).await
    }

    /// Returns whether a compiled component with this name exists.
    pub async fn has_compiled(&self, name: &str) -> Result<bool, Error> {
        self.has_path(&compiled(name)).await
    }

    async fn has_path(&self, path: &Path) -> Result<bool, Error> {
        Ok(unless_missing(self.objects.head(path).await)?.is_some())
    }

    /// Writes a compiled component. No row refers to it, so the sweep deletes
    /// it after a day.
    pub async fn write_compiled(&self, name: &str, content: Vec<u8>) -> Result<(), Error> {
        self.objects.put(&compiled(name), content.into()).await?;
        Ok(())
    }

    /// Reads a compiled component of at most `max` bytes; `None` if there is none.
    pub async fn read_compiled(&self, name: &str, max: u64) -> Result<Option<Bytes>, Error> {
        match unless_missing(self.objects.get(&compiled(name)).await)? {
            Some(found) if found.meta.size <= max => Ok(Some(found.bytes().await?)),
            _ => Ok(None),
        }
    }

    /// Begins an upload of an object that already has a name, from a backup.
    #[must_use]
    pub fn upload_as(&self, object: &str) -> Upload {
        Upload::begin(Arc::clone(&self.objects), object.to_owned())
    }

    /// Returns whether the blob store is empty.
    pub async fn is_empty(&self) -> Result<bool, Error> {
        let first = self.objects.list(None).next().await.transpose()?;
        Ok(first.is_none())
    }

    /// Begins an upload of a blob in chunks, under a random name.
    #[must_use]
    pub fn upload(&self, workspace: WorkspaceId, area: &str) -> Upload {
        Upload::begin(Arc::clone(&self.objects), fresh_object(workspace, area))
    }

    /// Reads at most `length` bytes of a blob from `offset`; returns no bytes
    /// at or after the end.
    pub async fn read(&self, blob: &StoredBlob, offset: u64, length: u64) -> Result<Bytes, Error> {
        let end = blob.size.min(offset.saturating_add(length));
        if offset >= end {
            return Ok(Bytes::new());
        }
        Ok(self.objects.get_range(&Path::from(blob.object.as_str()), offset..end).await?)
    }
}

/// Returns `None` for an object that does not exist.
fn unless_missing<T>(found: object_store::Result<T>) -> object_store::Result<Option<T>> {
    match found {
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        found => found.map(Some),
    }
}

fn compiled(name: &str) -> Path {
    Path::from_iter(["compiled", name])
}

/// Opens a folder as a blob store. A blob is synced to disk before it counts as
/// written.
fn open_folder(folder: &FilePath) -> object_store::Result<Arc<dyn ObjectStore>> {
    let failed = |error| object_store::Error::Generic { store: "folder", source: Box::new(error) };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let local = LocalFileSystem::new_with_prefix(folder)?;
    Ok(Arc::new(local.with_fsync(true).with_automatic_cleanup(true)))
}

/// Returns where an area's blob with this name is stored, from its database
/// row; `None` if there is none.
pub async fn find(
    connection: &mut Connection,
    workspace: WorkspaceId,
    area: &str,
    name: &str,
) -> Result<Option<StoredBlob>, Error> {
    let sql = "SELECT object, size, sha256 FROM blobs \
               WHERE workspace_id = $1 AND area = $2 AND name = $3";
    let row: Option<(String, i64, String)> =
        fetch_optional!(connection, sql, workspace.0, area.to_owned(), name.to_owned());
    Ok(row.map(|(object, size, sha256)| StoredBlob { object, size: size.cast_unsigned(), sha256 }))
}

/// Returns an object name with 256 random bits, which cannot be guessed.
fn fresh_object(workspace: WorkspaceId, area: &str) -> String {
    let mut name = [0_u8; 32];
    rand::fill(&mut name);
    format!("{workspace}/{area}/{}", hex::encode(name))
}
