//! Blobs of the workspace and area.

use super::{BlobError, Fault, UnitOfWork};
use crate::store::blobs::StoredBlob;

impl UnitOfWork {
    /// Size and hash of a blob.
    pub async fn blob_stat(&mut self, _name: &str) -> Result<Option<StoredBlob>, Fault<BlobError>> {
        Err(Fault::Refused(BlobError::NotFound))
    }

    /// At most `length` bytes from `offset`; empty at the end.
    pub async fn blob_read(
        &mut self,
        _name: &str,
        _offset: u64,
        _length: u32,
    ) -> Result<Vec<u8>, Fault<BlobError>> {
        Err(Fault::Refused(BlobError::NotFound))
    }

    /// Writes a blob; others see it with the commit.
    pub async fn blob_write(
        &mut self,
        _name: &str,
        _content: Vec<u8>,
    ) -> Result<StoredBlob, Fault<BlobError>> {
        Err(Fault::Refused(BlobError::NotFound))
    }

    /// Gives a name to content that was streamed in before the call.
    pub fn blob_attach(&mut self, _name: &str, _blob: StoredBlob) -> Result<(), BlobError> {
        Err(BlobError::NotFound)
    }

    /// Forgets a blob.
    pub async fn blob_delete(&mut self, _name: &str) -> Result<(), Fault<BlobError>> {
        Err(Fault::Refused(BlobError::NotFound))
    }
}
