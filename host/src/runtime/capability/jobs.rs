//! Work for later.

use super::super::bindings::assurance::area::jobs::{Error, Host, NewJob};
use super::super::instance::CallState;
use super::{JobsRefusal, Refusal};
use crate::domain::manifest::Capability;
use crate::domain::time::Timestamp;
use crate::work::{Wish, WorkError};

impl Host for CallState {
    fn enqueue(&mut self, job: NewJob) -> Result<String, JobsRefusal> {
        let unit = self.enter(Capability::Jobs)?;
        let enqueued = wish(job).and_then(|wish| unit.enqueue(wish));
        enqueued.map(|id| id.to_string()).map_err(|error| Refusal::Answer(error.into()))
    }

    fn convert_error(&mut self, refusal: JobsRefusal) -> wasmtime::Result<Error> {
        refusal.split()
    }
}

fn wish(job: NewJob) -> Result<Wish, WorkError> {
    let resource = job.resource.map(|text| text.parse()).transpose();
    Ok(Wish {
        kind: job.kind,
        payload: job.payload,
        resource: resource.map_err(|_| WorkError::Misuse("`resource` is no UUID".to_owned()))?,
        available_at: job.available_at.map(Timestamp),
        dedupe_key: job.dedupe_key,
    })
}

impl From<WorkError> for Error {
    fn from(error: WorkError) -> Self {
        match error {
            WorkError::Misuse(what) => Self::Misuse(what),
            WorkError::LimitExceeded => Self::LimitExceeded,
        }
    }
}
