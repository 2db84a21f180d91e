//! Blobs of the workspace and area.

use std::sync::Arc;

use super::reading::What;
use super::{BlobError, Fault, Kept, UnitOfWork};
use crate::config::Malware;
use crate::malware::{self, ScanError, Verdict};
use crate::store::Error;
use crate::store::blobs::{self, StoredBlob};

/// Characters of a blob's or secret's name.
const MAX_NAME: usize = 200;
/// Bytes of one read: the host holds them before the guest's own memory bounds
/// them, for every call that reads.
const MAX_PIECE: u64 = 8 << 20;

impl UnitOfWork {
    /// Size and hash of a blob.
    pub async fn blob_stat(&mut self, name: &str) -> Result<Option<StoredBlob>, Fault<BlobError>> {
        check_name(name)?;
        if !self.blobs.contains_key(name) {
            let workspace = self.spec.call.workspace;
            let area = Arc::clone(&self.spec.area);
            let mut lease = self.lease(What::Other, 1).await?;
            let now = blobs::find(lease.connection(), workspace, &area.area, name).await?;
            self.done(lease);
            self.blobs.insert(name.to_owned(), Kept { now, changed: false });
        }
        Ok(self.blobs.get(name).and_then(|kept| kept.now.clone()))
    }

    /// At most `length` bytes from `offset`, and at most 8 MiB; empty at
    /// the end.
    pub async fn blob_read(
        &mut self,
        name: &str,
        offset: u64,
        length: u32,
    ) -> Result<Vec<u8>, Fault<BlobError>> {
        let blob = self.blob_stat(name).await?.ok_or(Fault::Refused(BlobError::NotFound))?;
        self.content(&blob, offset, length).await
    }

    async fn content(
        &mut self,
        blob: &StoredBlob,
        offset: u64,
        length: u32,
    ) -> Result<Vec<u8>, Fault<BlobError>> {
        let length = u64::from(length).min(MAX_PIECE).min(blob.size.saturating_sub(offset));
        self.charge_blobs(length)?;
        let content = self.store.blobs().read(blob, offset, length).await;
        content.map(Into::into).map_err(away)
    }

    /// Size and hash of another area's blob, if that area shares its blobs.
    pub async fn shared_blob_stat(
        &mut self,
        area: &str,
        name: &str,
    ) -> Result<Option<StoredBlob>, Fault<BlobError>> {
        check_name(name)?;
        let scope = Arc::clone(&self.spec.area);
        if !scope.live.contains(area) {
            return Ok(None);
        }
        if !scope.shared_blobs.contains(area) {
            return Err(Fault::Refused(BlobError::NotShared(area.to_owned())));
        }
        let key = (area.to_owned(), name.to_owned());
        if let Some(found) = self.shared_blobs.get(&key) {
            return Ok(found.clone());
        }
        let mut lease = self.lease(What::Other, 1).await?;
        let workspace = self.spec.call.workspace;
        let found = blobs::find(lease.connection(), workspace, area, name).await?;
        self.done(lease);
        self.shared_blobs.insert(key, found.clone());
        Ok(found)
    }

    /// At most `length` bytes of another area's blob from `offset`.
    pub async fn shared_blob_read(
        &mut self,
        area: &str,
        name: &str,
        offset: u64,
        length: u32,
    ) -> Result<Vec<u8>, Fault<BlobError>> {
        let blob = self.shared_blob_stat(area, name).await?;
        self.content(&blob.ok_or(Fault::Refused(BlobError::NotFound))?, offset, length).await
    }

    /// Has a blob of this area scanned. It is looked up by itself: no
    /// transaction is to be open for as long as the scanner takes.
    pub async fn blob_scan(
        &mut self,
        settings: &Malware,
        name: &str,
    ) -> Result<Result<Verdict, ScanError>, Fault<BlobError>> {
        check_name(name)?;
        let blob = match self.blobs.get(name) {
            Some(kept) => kept.now.clone(),
            None => {
                let workspace = self.spec.call.workspace;
                let area = std::sync::Arc::clone(&self.spec.area);
                match self.held() {
                    Some(held) => blobs::find(held, workspace, &area.area, name).await?,
                    None => {
                        let mut connection = self.store.reader().await?;
                        let found =
                            blobs::find(&mut connection, workspace, &area.area, name).await?;
                        connection.release();
                        found
                    }
                }
            }
        };
        let blob = blob.ok_or(Fault::Refused(BlobError::NotFound))?;
        self.let_go().await?;
        Ok(malware::scan(settings, self.store.blobs(), &blob).await)
    }

    /// Writes a blob; others see it with the commit.
    pub async fn blob_write(
        &mut self,
        name: &str,
        content: Vec<u8>,
    ) -> Result<StoredBlob, Fault<BlobError>> {
        self.check_blob(name).map_err(Fault::Refused)?;
        self.charge_blobs(content.len() as u64)?;
        let (workspace, area) = (self.spec.call.workspace, &self.spec.area.area);
        let written = self.store.blobs().write(workspace, area, content).await;
        let blob = written.map_err(away)?;
        self.blobs.insert(name.to_owned(), Kept { now: Some(blob.clone()), changed: true });
        Ok(blob)
    }

    /// Gives a name to content that was streamed in before the call.
    pub fn blob_attach(&mut self, name: &str, blob: StoredBlob) -> Result<(), BlobError> {
        self.check_blob(name)?;
        self.blobs.insert(name.to_owned(), Kept { now: Some(blob), changed: true });
        Ok(())
    }

    /// Forgets a blob.
    pub async fn blob_delete(&mut self, name: &str) -> Result<(), Fault<BlobError>> {
        self.check_blob(name).map_err(Fault::Refused)?;
        if self.blob_stat(name).await?.is_none() {
            return Err(Fault::Refused(BlobError::NotFound));
        }
        self.blobs.insert(name.to_owned(), Kept { now: None, changed: true });
        Ok(())
    }

    fn charge_blobs(&mut self, bytes: u64) -> Result<(), Fault<BlobError>> {
        self.used.blob_bytes = self.used.blob_bytes.saturating_add(bytes);
        let fits = self.used.blob_bytes <= self.spec.limits.max_blob_bytes;
        if fits { Ok(()) } else { Err(Fault::Refused(BlobError::LimitExceeded)) }
    }

    fn check_blob(&self, name: &str) -> Result<(), BlobError> {
        if !self.spec.writes {
            return Err(BlobError::ReadOnly);
        }
        if is_name(name) { Ok(()) } else { Err(BlobError::InvalidName) }
    }
}

fn check_name(name: &str) -> Result<(), Fault<BlobError>> {
    if is_name(name) { Ok(()) } else { Err(Fault::Refused(BlobError::InvalidName)) }
}

/// 1 to 200 of `A-Za-z0-9._/-`.
pub(super) fn is_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._/-".contains(&b);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

/// Content that a row names and that is not there is the blob store's fault.
fn away(error: Error) -> Fault<BlobError> {
    tracing::warn!(%error, "the blob store failed");
    Fault::Refused(BlobError::Unavailable)
}
