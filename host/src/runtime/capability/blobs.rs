//! Content too large for a document.

use super::super::bindings::assurance::area::blobs::{Error, Host, Info};
use super::super::instance::CallState;
use super::super::trap::Stop;
use super::{BlobsRefusal, Refusal};
use crate::domain::manifest::Capability;
use crate::store::blobs::StoredBlob;
use crate::work::{BlobError, Fault, UnitOfWork};

type Answer<T> = Result<T, BlobsRefusal>;

impl CallState {
    fn blobs(&mut self) -> wasmtime::Result<&mut UnitOfWork> {
        self.enter(Capability::Blobs)
    }
}

impl Host for CallState {
    async fn stat(&mut self, name: String) -> Answer<Option<Info>> {
        let stat = self.blobs()?.blob_stat(&name).await.map_err(refusal)?;
        Ok(stat.map(info))
    }

    async fn read(&mut self, name: String, offset: u64, length: u32) -> Answer<Vec<u8>> {
        self.blobs()?.blob_read(&name, offset, length).await.map_err(refusal)
    }

    async fn write(&mut self, name: String, content: Vec<u8>) -> Answer<Info> {
        let written = self.blobs()?.blob_write(&name, content).await.map_err(refusal)?;
        Ok(info(written))
    }

    async fn delete(&mut self, name: String) -> Answer<()> {
        self.blobs()?.blob_delete(&name).await.map_err(refusal)
    }

    async fn stat_shared(&mut self, area: String, name: String) -> Answer<Option<Info>> {
        let stat = self.blobs()?.shared_blob_stat(&area, &name).await.map_err(refusal)?;
        Ok(stat.map(info))
    }

    async fn read_shared(
        &mut self,
        area: String,
        name: String,
        offset: u64,
        length: u32,
    ) -> Answer<Vec<u8>> {
        self.blobs()?.shared_blob_read(&area, &name, offset, length).await.map_err(refusal)
    }

    fn convert_error(&mut self, refusal: BlobsRefusal) -> wasmtime::Result<Error> {
        refusal.split()
    }
}

fn info(blob: StoredBlob) -> Info {
    Info { size: blob.size, sha256: blob.sha256 }
}

fn refusal(fault: Fault<BlobError>) -> BlobsRefusal {
    Refusal::Answer(match fault {
        Fault::Refused(BlobError::NotFound) => Error::NotFound,
        Fault::Refused(BlobError::LimitExceeded) => Error::LimitExceeded,
        Fault::Refused(BlobError::InvalidName) => Error::InvalidName,
        Fault::Refused(BlobError::Unavailable) => Error::Unavailable,
        // The contract has no word for these: they are the guest's own mistakes.
        Fault::Refused(error @ (BlobError::ReadOnly | BlobError::NotShared(_))) => {
            return Refusal::Stop(Stop::Misuse(error.to_string()).into());
        }
        Fault::Abort(error) => return Refusal::Stop(super::stop(error)),
    })
}
