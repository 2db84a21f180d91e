//! Interface `jobs`: jobs and their progress, with the commit.

use super::super::bindings::assurance::area::jobs::{Error, Host, NewJob, Progress, RunningJob};
use super::super::convert::same;
use super::super::instance::CallState;
use super::{CapabilityError, convert_error, stop};
use assurance_core::domain::job::JobProgress;
use assurance_core::domain::manifest::Capability;
use assurance_core::domain::time::Timestamp;
use assurance_work::{EnqueueJobRequest, PublishOrEnqueueError};

impl Host for CallState {
    fn enqueue(&mut self, job: NewJob) -> Result<String, CapabilityError<Error>> {
        let unit = self.enter(Capability::Jobs)?;
        let enqueued = job_request(job).and_then(|request| unit.enqueue(request));
        enqueued.map(|id| id.to_string()).map_err(|error| CapabilityError::Answer(error.into()))
    }

    fn report_progress(&mut self, progress: Progress) -> Result<(), CapabilityError<Error>> {
        let unit = self.enter(Capability::Jobs)?;
        let progress = JobProgress { done: progress.done, total: progress.total };
        unit.report_progress(progress).map_err(|error| CapabilityError::Answer(error.into()))
    }

    async fn progress_of(&mut self, resource: String) -> wasmtime::Result<Vec<RunningJob>> {
        let unit = self.enter(Capability::Jobs)?;
        let Ok(resource) = resource.parse() else { return Ok(Vec::new()) };
        let jobs = unit.progress_of(resource).await.map_err(stop)?;
        let running = |(area, kind, JobProgress { done, total })| RunningJob {
            area,
            kind,
            progress: Progress { done, total },
        };
        Ok(jobs.into_iter().map(running).collect())
    }

    convert_error!();
}

fn job_request(job: NewJob) -> Result<EnqueueJobRequest, PublishOrEnqueueError> {
    let resource = job.resource.map(|text| text.parse()).transpose();
    Ok(EnqueueJobRequest {
        kind: job.kind,
        payload: job.payload,
        resource: resource
            .map_err(|_| PublishOrEnqueueError::Misuse("`resource` is not a UUID".to_owned()))?,
        available_at: job.available_at.map(Timestamp),
        dedupe_key: job.dedupe_key,
    })
}

same!(PublishOrEnqueueError => Error { Misuse(what), LimitExceeded });
