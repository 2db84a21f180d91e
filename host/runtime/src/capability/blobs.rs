//! Interface `blobs`: content too large for a document.

use super::super::bindings::assurance::area::blobs::{Error, Host, Info};
use super::super::instance::CallState;
use super::super::trap::FatalHostCallError;
use super::{CapabilityError, convert_error};
use assurance_core::domain::manifest::Capability;
use assurance_store::blobs::StoredBlob;
use assurance_work::{BlobError, HostCallError};

type BlobsResult<T> = Result<T, CapabilityError<Error>>;

impl Host for CallState {
    async fn stat(&mut self, name: String) -> BlobsResult<Option<Info>> {
        let stat = self.enter(Capability::Blobs)?.blob_stat(&name).await.map_err(refusal)?;
        Ok(stat.map(info))
    }

    async fn read(&mut self, name: String, offset: u64, length: u32) -> BlobsResult<Vec<u8>> {
        self.enter(Capability::Blobs)?.blob_read(&name, offset, length).await.map_err(refusal)
    }

    async fn write(&mut self, name: String, content: Vec<u8>) -> BlobsResult<Info> {
        let written =
            self.enter(Capability::Blobs)?.blob_write(&name, content).await.map_err(refusal)?;
        Ok(info(written))
    }

    async fn delete(&mut self, name: String) -> BlobsResult<()> {
        self.enter(Capability::Blobs)?.blob_delete(&name).await.map_err(refusal)
    }

    async fn stat_shared(&mut self, area: String, name: String) -> BlobsResult<Option<Info>> {
        let stat =
            self.enter(Capability::Blobs)?.shared_blob_stat(&area, &name).await.map_err(refusal)?;
        Ok(stat.map(info))
    }

    async fn read_shared(
        &mut self,
        area: String,
        name: String,
        offset: u64,
        length: u32,
    ) -> BlobsResult<Vec<u8>> {
        self.enter(Capability::Blobs)?
            .shared_blob_read(&area, &name, offset, length)
            .await
            .map_err(refusal)
    }

    convert_error!();
}

fn info(blob: StoredBlob) -> Info {
    Info { size: blob.size, sha256: blob.sha256 }
}

fn refusal(fault: HostCallError<BlobError>) -> CapabilityError<Error> {
    CapabilityError::Answer(match fault {
        HostCallError::Refused(BlobError::NotFound) => Error::NotFound,
        HostCallError::Refused(BlobError::LimitExceeded) => Error::LimitExceeded,
        HostCallError::Refused(BlobError::InvalidName) => Error::InvalidName,
        HostCallError::Refused(BlobError::Unavailable) => Error::Unavailable,
        // The contract has no error for these, because they are errors in the
        // guest's code.
        HostCallError::Refused(error @ (BlobError::ReadOnly | BlobError::NotShared(_))) => {
            return CapabilityError::Stop(FatalHostCallError::Misuse(error.to_string()).into());
        }
        HostCallError::Abort(error) => return CapabilityError::Stop(super::stop(error)),
    })
}
