//! Content too large for a document, stored by name: this area's blobs, and those that other areas
//! share.

use crate::context::Scope;
pub use crate::wit::assurance::area::blobs::{Error as BlobError, Info as BlobInfo};

/// Size of one read when a whole blob is read, in bytes.
const PIECE_BYTES: u32 = 4 << 20;

/// Access to the blobs of this area in the workspace.
#[derive(Debug)]
pub struct Blobs<'a>(pub(crate) &'a Scope);

impl Blobs<'_> {
    /// Returns size and digest of the blob with this name; `None` if the blob does not exist.
    pub fn stat(&self, name: &str) -> Result<Option<BlobInfo>, BlobError> {
        self.0.host.blobs_stat(name)
    }

    /// Returns at most `length` bytes from `offset`; empty at the end of the blob.
    pub fn read(&self, name: &str, offset: u64, length: u32) -> Result<Vec<u8>, BlobError> {
        self.0.host.blobs_read(name, offset, length)
    }

    /// Returns the whole blob; `LimitExceeded` if it has more than `limit` bytes.
    pub fn read_all(&self, name: &str, limit: u64) -> Result<Vec<u8>, BlobError> {
        whole(self.stat(name)?, limit, |offset| self.read(name, offset, PIECE_BYTES))
    }

    /// Creates or replaces a blob of this area. Returns its size and digest.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<BlobInfo, BlobError> {
        self.0.host.blobs_write(name, content)
    }

    /// Deletes a blob of this area.
    pub fn delete(&self, name: &str) -> Result<(), BlobError> {
        self.0.host.blobs_delete(name)
    }
}

/// Blobs that another area shares with this one. While that area is not live, no blob exists.
#[derive(Debug)]
pub struct SharedBlobs<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) area: &'a str,
}

impl SharedBlobs<'_> {
    /// Returns size and digest of the other area's blob with this name; `None` if the blob does not
    /// exist.
    pub fn stat(&self, name: &str) -> Result<Option<BlobInfo>, BlobError> {
        self.scope.host.blobs_stat_shared(self.area, name)
    }

    /// Returns at most `length` bytes from `offset`; empty at the end of the blob.
    pub fn read(&self, name: &str, offset: u64, length: u32) -> Result<Vec<u8>, BlobError> {
        self.scope.host.blobs_read_shared(self.area, name, offset, length)
    }

    /// Returns the whole blob; `LimitExceeded` if it has more than `limit` bytes.
    pub fn read_all(&self, name: &str, limit: u64) -> Result<Vec<u8>, BlobError> {
        whole(self.stat(name)?, limit, |offset| self.read(name, offset, PIECE_BYTES))
    }
}

fn whole(
    info: Option<BlobInfo>,
    limit: u64,
    read: impl Fn(u64) -> Result<Vec<u8>, BlobError>,
) -> Result<Vec<u8>, BlobError> {
    let size = info.ok_or(BlobError::NotFound)?.size;
    let room = usize::try_from(size).map_err(|_| BlobError::LimitExceeded)?;
    if size > limit {
        return Err(BlobError::LimitExceeded);
    }
    let mut content = Vec::with_capacity(room);
    while content.len() < room {
        let piece = read(content.len() as u64)?;
        if piece.is_empty() {
            return Err(BlobError::Unavailable);
        }
        content.extend_from_slice(&piece);
    }
    Ok(content)
}
