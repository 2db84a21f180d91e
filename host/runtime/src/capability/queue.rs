//! Interface `queue`: the workspace's jobs of all areas.

use super::super::bindings::assurance::area::queue::{
    Error, Filter, Host, Job, Lane, Page, Progress,
};
use super::super::convert::queue as convert;
use super::super::instance::CallState;
use super::{CapabilityError, convert_error, stop};
use assurance_core::domain::id::JobId;
use assurance_core::domain::job::{self, JobProgress};
use assurance_core::domain::manifest::Capability;
use assurance_work::QueueError;

type QueueResult<T> = Result<T, CapabilityError<Error>>;

impl Host for CallState {
    async fn lanes(&mut self) -> wasmtime::Result<Vec<Lane>> {
        let loads = self.enter(Capability::Queue)?.lane_loads().await.map_err(stop)?;
        let mut lanes = job::Lane::ALL;
        lanes.sort_by_key(|lane| lane.as_str());
        let shares = &self.shared.settings.config.jobs.lanes;
        let lane = |lane: job::Lane| {
            let load = loads.get(&lane).copied().unwrap_or_default();
            convert::lane(lane, shares.of(lane).capacity, load)
        };
        Ok(lanes.into_iter().map(lane).collect())
    }

    async fn overview(&mut self, limit: u32) -> QueueResult<Vec<Job>> {
        let jobs = self.enter(Capability::Queue)?.queue_overview(limit).await?;
        Ok(jobs.into_iter().map(convert::job).collect())
    }

    async fn find(
        &mut self,
        filter: Filter,
        cursor: Option<String>,
        limit: u32,
    ) -> QueueResult<Page> {
        let unit = self.enter(Capability::Queue)?;
        let Some(filter) = convert::filter(filter) else {
            // The filter has an unknown lane or resource, so no job matches.
            return Ok(Page { jobs: Vec::new(), next: None });
        };
        let (jobs, next) = unit.queue_page(&filter, cursor.as_deref(), limit).await?;
        Ok(Page { jobs: jobs.into_iter().map(convert::job).collect(), next })
    }

    async fn get(&mut self, job: String) -> wasmtime::Result<Option<Job>> {
        let unit = self.enter(Capability::Queue)?;
        let Ok(job) = job.parse::<JobId>() else { return Ok(None) };
        Ok(unit.queued_job(job).await.map_err(stop)?.map(convert::job))
    }

    async fn progress_of(&mut self, job: String) -> wasmtime::Result<Option<Progress>> {
        let unit = self.enter(Capability::Queue)?;
        let Ok(job) = job.parse::<JobId>() else { return Ok(None) };
        let progress = unit.queued_job(job).await.map_err(stop)?.and_then(|job| job.progress);
        Ok(progress.map(|JobProgress { done, total }| Progress { done, total }))
    }

    async fn retry(&mut self, job: String) -> QueueResult<Job> {
        let unit = self.enter(Capability::Queue)?;
        Ok(convert::job(unit.retry_job(id(&job)?).await?))
    }

    async fn cancel(&mut self, job: String, reason: String) -> QueueResult<Job> {
        let unit = self.enter(Capability::Queue)?;
        Ok(convert::job(unit.cancel_job(id(&job)?, reason).await?))
    }

    convert_error!();
}

fn id(text: &str) -> QueueResult<JobId> {
    text.parse().map_err(|_| CapabilityError::Answer(Error::NotFound))
}

impl From<QueueError> for Error {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::NotFound => Self::NotFound,
            QueueError::WrongStatus(status) => Self::WrongStatus(status.into()),
            QueueError::Superseded => Self::Superseded,
            QueueError::NotCancellable => Self::NotCancellable,
            QueueError::InvalidCursor => Self::InvalidCursor,
            QueueError::Misuse(what) => Self::Misuse(what),
        }
    }
}
