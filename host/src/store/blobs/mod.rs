//! Large content, outside the database: in a folder, or in a bucket that a
//! fleet shares.
//!
//! Content is written first, under a fresh name nobody can guess; the row that
//! names it comes with the transaction, and only then is it there for anyone.
//! What no row names any more, or never did, is swept later.

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

use super::connection::{Connection, on};
use super::error::Error;
use crate::domain::id::WorkspaceId;

pub use bucket::Bucket;
pub use sweep::sweep;
pub use upload::Upload;

/// Bytes that are hashed before other tasks get their turn.
const PIECE_BYTES: usize = 1 << 20;

/// What [`Blobs::check`] writes and deletes.
const TRIAL: &str = "trial";
/// Where nothing is: neither a folder nor a file has a part of this name.
const NOWHERE: &str = "nothing";

/// Where content is to be kept.
#[derive(Clone, Debug)]
pub enum Place {
    /// In a folder; made where it is missing.
    Folder(PathBuf),
    /// In a bucket, which must be there.
    Bucket(Box<Bucket>),
}

/// Where content is kept.
#[derive(Clone, Debug)]
pub struct Blobs {
    objects: Arc<dyn ObjectStore>,
    place: Arc<Place>,
}

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

impl Blobs {
    /// Makes the folder, or a client of the bucket's service; nothing is asked
    /// of that yet.
    pub fn open(place: &Place) -> Result<Self, Error> {
        let opened = match place {
            Place::Folder(folder) => open_folder(folder),
            Place::Bucket(bucket) => bucket.connect(),
        };
        let objects = opened.map_err(|failed| error::unusable(place, &failed))?;
        Ok(Self { objects, place: Arc::new(place.clone()) })
    }

    /// Whether content can be listed, written and deleted there.
    ///
    /// # Errors
    /// Names the place, what is wrong with it and the way out.
    pub async fn check(&self) -> Result<(), Error> {
        self.try_out().await.map_err(|failed| error::unusable(&self.place, &failed))
    }

    async fn try_out(&self) -> object_store::Result<()> {
        let trial = Path::from(TRIAL);
        self.objects.put(&trial, Bytes::new().into()).await?;
        self.list_nothing().await?;
        match self.objects.delete(&trial).await {
            // Another host tries it out as well.
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(failed) => Err(failed),
        }
    }

    /// Asks the blob store whether it is there.
    pub async fn ping(&self) -> Result<(), Error> {
        Ok(self.list_nothing().await?)
    }

    /// One question to a bucket, of which it must know the answer.
    async fn list_nothing(&self) -> object_store::Result<()> {
        self.objects.list(Some(&Path::from(NOWHERE))).next().await.transpose().map(drop)
    }

    /// Writes content that is already in memory.
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

    /// Writes a component, under its digest; where that is.
    pub async fn write_component(&self, digest: &str, content: Bytes) -> Result<String, Error> {
        let object = format!("components/{digest}.wasm");
        self.objects.put(&Path::from(object.as_str()), content.into()).await?;
        Ok(object)
    }

    /// Reads a component.
    pub async fn read_component(&self, object: &str) -> Result<Bytes, Error> {
        match self.objects.get(&Path::from(object)).await {
            Ok(found) => Ok(found.bytes().await?),
            Err(object_store::Error::NotFound { .. }) => Err(Error::NotFound),
            Err(failed) => Err(failed.into()),
        }
    }

    /// Whether there is an object of this name.
    pub async fn has(&self, object: &str) -> Result<bool, Error> {
        self.has_path(&Path::from(object)).await
    }

    /// Whether there is a compiled component of this name.
    pub async fn has_compiled(&self, name: &str) -> Result<bool, Error> {
        self.has_path(&compiled(name)).await
    }

    async fn has_path(&self, path: &Path) -> Result<bool, Error> {
        match self.objects.head(path).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(failed) => Err(failed.into()),
        }
    }

    /// Writes a compiled component. No row names it, so it is there for a day.
    pub async fn write_compiled(&self, name: &str, content: Vec<u8>) -> Result<(), Error> {
        self.objects.put(&compiled(name), content.into()).await?;
        Ok(())
    }

    /// Reads a compiled component, where there is one of at most so many bytes.
    pub async fn read_compiled(&self, name: &str, max: u64) -> Result<Option<Bytes>, Error> {
        match self.objects.get(&compiled(name)).await {
            Ok(found) if found.meta.size <= max => Ok(Some(found.bytes().await?)),
            Ok(_) | Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(failed) => Err(failed.into()),
        }
    }

    /// Begins to take the content of an object that has its name, from a backup.
    #[must_use]
    pub fn upload_as(&self, object: &str) -> Upload {
        Upload::begin(Arc::clone(&self.objects), object.to_owned())
    }

    /// Whether nothing is there.
    pub async fn is_empty(&self) -> Result<bool, Error> {
        let first = self.objects.list(None).next().await.transpose()?;
        Ok(first.is_none())
    }

    /// Begins to take content in pieces.
    #[must_use]
    pub fn upload(&self, workspace: WorkspaceId, area: &str) -> Upload {
        Upload::begin(Arc::clone(&self.objects), fresh_object(workspace, area))
    }

    /// At most `length` bytes from `offset`; nothing at or behind the end.
    pub async fn read(&self, blob: &StoredBlob, offset: u64, length: u64) -> Result<Bytes, Error> {
        let end = blob.size.min(offset.saturating_add(length));
        if offset >= end {
            return Ok(Bytes::new());
        }
        Ok(self.objects.get_range(&Path::from(blob.object.as_str()), offset..end).await?)
    }
}

fn compiled(name: &str) -> Path {
    Path::from_iter(["compiled", name])
}

/// Each blob is on the disk before it counts as written.
fn open_folder(folder: &FilePath) -> object_store::Result<Arc<dyn ObjectStore>> {
    let failed = |error| object_store::Error::Generic { store: "folder", source: Box::new(error) };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let local = LocalFileSystem::new_with_prefix(folder)?;
    Ok(Arc::new(local.with_fsync(true).with_automatic_cleanup(true)))
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

/// 256 random bits: who does not have the row cannot name the object.
fn fresh_object(workspace: WorkspaceId, area: &str) -> String {
    let mut name = [0_u8; 32];
    rand::fill(&mut name);
    format!("{workspace}/{area}/{}", hex::encode(name))
}
