//! Reads and writes blobs of the call's workspace and area.

use std::sync::Arc;

use super::reading::ReadKind;
use super::{BlobError, HostCallError, SecretOrBlobState, UnitOfWork};
use assurance_core::config::MalwareConfig;
use assurance_outside::malware::{self, ScanError, ScanVerdict};
use assurance_store::Error;
use assurance_store::apply::ReadBlob;
use assurance_store::blobs::{self, StoredBlob};

/// Maximum length of the name of a blob or secret, in characters.
const MAX_NAME: usize = 200;
/// Maximum number of bytes that one read of a blob returns. The host holds this
/// memory for each reading call, in addition to the guest's memory.
const MAX_PIECE: u64 = 8 << 20;

impl UnitOfWork {
    /// Returns size and hash of one of the area's blobs; `None` if there is
    /// none with this name.
    pub async fn blob_stat(
        &mut self,
        name: &str,
    ) -> Result<Option<StoredBlob>, HostCallError<BlobError>> {
        check_name(name)?;
        if !self.blobs.contains_key(name) {
            let area = Arc::clone(&self.spec.area);
            let now = self.read_blob(&area.area, name).await?;
            self.blobs.insert(name.to_owned(), SecretOrBlobState { now, changed: false });
        }
        Ok(self.blobs.get(name).and_then(|kept| kept.now.clone()))
    }

    /// Reads the row of a blob, which must be unchanged at the commit.
    async fn read_blob(&mut self, area: &str, name: &str) -> Result<Option<StoredBlob>, Error> {
        let workspace = self.spec.call.workspace;
        let found =
            self.read(ReadKind::Blobs, async |c| blobs::find(c, workspace, area, name).await);
        let found = found.await?;
        let object = found.as_ref().map(|blob| blob.object.clone());
        self.seen_blobs.push(ReadBlob { area: area.to_owned(), name: name.to_owned(), object });
        Ok(found)
    }

    /// Reads at most `length` bytes, and at most 8 MiB, of one of the area's
    /// blobs from `offset`; returns no bytes at the end.
    pub async fn blob_read(
        &mut self,
        name: &str,
        offset: u64,
        length: u32,
    ) -> Result<Vec<u8>, HostCallError<BlobError>> {
        let blob =
            self.blob_stat(name).await?.ok_or(HostCallError::Refused(BlobError::NotFound))?;
        self.content(&blob, offset, length).await
    }

    async fn content(
        &mut self,
        blob: &StoredBlob,
        offset: u64,
        length: u32,
    ) -> Result<Vec<u8>, HostCallError<BlobError>> {
        let length = u64::from(length).min(MAX_PIECE).min(blob.size.saturating_sub(offset));
        self.charge_blobs(length)?;
        let content = self.store.blobs().read(blob, offset, length).await;
        content.map(Into::into).map_err(away)
    }

    /// Returns size and hash of another area's blob; `None` if it does not
    /// exist or that area is not live. Refused unless that area shares its
    /// blobs with this one.
    pub async fn shared_blob_stat(
        &mut self,
        area: &str,
        name: &str,
    ) -> Result<Option<StoredBlob>, HostCallError<BlobError>> {
        check_name(name)?;
        let scope = Arc::clone(&self.spec.area);
        if !scope.live.contains(area) {
            return Ok(None);
        }
        if !scope.shared_blobs.contains(area) {
            return Err(HostCallError::Refused(BlobError::NotShared(area.to_owned())));
        }
        let key = (area.to_owned(), name.to_owned());
        if let Some(found) = self.shared_blobs.get(&key) {
            return Ok(found.clone());
        }
        let found = self.read_blob(area, name).await?;
        self.shared_blobs.insert(key, found.clone());
        Ok(found)
    }

    /// Reads at most `length` bytes of another area's blob from `offset`.
    pub async fn shared_blob_read(
        &mut self,
        area: &str,
        name: &str,
        offset: u64,
        length: u32,
    ) -> Result<Vec<u8>, HostCallError<BlobError>> {
        let blob = self.shared_blob_stat(area, name).await?;
        self.content(&blob.ok_or(HostCallError::Refused(BlobError::NotFound))?, offset, length)
            .await
    }

    /// Scans a blob of the call's area for malware. The blob's row is read
    /// separately, so that no transaction is open during the scan.
    pub async fn blob_scan(
        &mut self,
        settings: &MalwareConfig,
        name: &str,
    ) -> Result<Result<ScanVerdict, ScanError>, HostCallError<BlobError>> {
        check_name(name)?;
        let blob = match self.blobs.get(name) {
            Some(kept) => kept.now.clone(),
            None => {
                let (workspace, area) = (self.spec.call.workspace, Arc::clone(&self.spec.area));
                self.read_apart(async |c| blobs::find(c, workspace, &area.area, name).await).await?
            }
        };
        let blob = blob.ok_or(HostCallError::Refused(BlobError::NotFound))?;
        self.release_connection().await?;
        Ok(malware::scan(settings, self.store.blobs(), &blob).await)
    }

    /// Writes one of the area's blobs; other calls see it after the commit.
    pub async fn blob_write(
        &mut self,
        name: &str,
        content: Vec<u8>,
    ) -> Result<StoredBlob, HostCallError<BlobError>> {
        self.check_blob(name).map_err(HostCallError::Refused)?;
        self.charge_blobs(content.len() as u64)?;
        let (workspace, area) = (self.spec.call.workspace, &self.spec.area.area);
        let written = self.store.blobs().write(workspace, area, content).await;
        let blob = written.map_err(away)?;
        self.blobs
            .insert(name.to_owned(), SecretOrBlobState { now: Some(blob.clone()), changed: true });
        Ok(blob)
    }

    /// Gives a blob name to content that the host stored before the call.
    pub fn blob_attach(&mut self, name: &str, blob: StoredBlob) -> Result<(), BlobError> {
        self.check_blob(name)?;
        self.blobs.insert(name.to_owned(), SecretOrBlobState { now: Some(blob), changed: true });
        Ok(())
    }

    /// Deletes one of the area's blobs when the call commits.
    pub async fn blob_delete(&mut self, name: &str) -> Result<(), HostCallError<BlobError>> {
        self.check_blob(name).map_err(HostCallError::Refused)?;
        if self.blob_stat(name).await?.is_none() {
            return Err(HostCallError::Refused(BlobError::NotFound));
        }
        self.blobs.insert(name.to_owned(), SecretOrBlobState { now: None, changed: true });
        Ok(())
    }

    fn charge_blobs(&mut self, bytes: u64) -> Result<(), HostCallError<BlobError>> {
        self.used.blob_bytes = self.used.blob_bytes.saturating_add(bytes);
        let fits = self.used.blob_bytes <= self.spec.limits.max_blob_bytes;
        if fits { Ok(()) } else { Err(HostCallError::Refused(BlobError::LimitExceeded)) }
    }

    fn check_blob(&self, name: &str) -> Result<(), BlobError> {
        if !self.spec.writes {
            return Err(BlobError::ReadOnly);
        }
        if is_name(name) { Ok(()) } else { Err(BlobError::InvalidName) }
    }
}

fn check_name(name: &str) -> Result<(), HostCallError<BlobError>> {
    if is_name(name) { Ok(()) } else { Err(HostCallError::Refused(BlobError::InvalidName)) }
}

/// Returns whether the name of a blob or secret has 1 to 200 characters of
/// `A-Za-z0-9._/-`.
pub(super) fn is_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._/-".contains(&b);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

/// Logs an error of the blob store and converts it for the guest. Missing
/// content of an existing row is an error of the blob store too.
fn away(error: Error) -> HostCallError<BlobError> {
    tracing::warn!(%error, "the blob store failed");
    HostCallError::Refused(BlobError::Unavailable)
}
