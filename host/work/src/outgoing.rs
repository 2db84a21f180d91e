//! Publishes events and enqueues jobs; they are written when the call commits.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::body::check_object;
use super::error::READ_ONLY;
use super::{EventSubscriber, PublishOrEnqueueError, UnitOfWork};
use assurance_core::domain::id::{EventId, JobId, WorkspaceId};
use assurance_core::domain::job::{
    EVENT_KIND, EventDeliveryJobTemplate, JobProgress, MERGED_EVENTS_KIND, NewJob,
};
use assurance_core::domain::time::Timestamp;

/// Maximum length of a job's dedupe key, in characters; an index of the database contains it.
const MAX_KEY: usize = 200;

/// A guest's request to enqueue a job of its area.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnqueueJobRequest {
    /// Job kind, as the area's manifest declares it.
    pub kind: String,
    /// Payload that the job receives, a JSON object.
    pub payload: String,
    /// Id of the resource that the job concerns; `None` if it concerns none.
    pub resource: Option<Uuid>,
    /// Earliest time at which the job runs; `None` means at once.
    pub available_at: Option<Timestamp>,
    /// Key by which duplicates are avoided: at most one of a workspace's jobs of this kind with the
    /// same key waits or runs. At most 200 characters; `None` permits any number.
    pub dedupe_key: Option<String>,
}

impl UnitOfWork {
    /// Publishes an event: enqueues one job for each subscriber. The commit omits
    /// the jobs of subscribers that only want what the workspace requests.
    pub fn publish(&mut self, name: &str, data: String) -> Result<EventId, PublishOrEnqueueError> {
        let area = Arc::clone(&self.spec.area);
        let Some(subscribers) = area.events.get(name) else {
            return misuse(format!("{} does not publish {name:?}", area.area));
        };
        self.may_send(&data)?;
        check_object(&data)
            .map_err(|what| PublishOrEnqueueError::Misuse(format!("event {name}: {what}")))?;
        self.used.events += 1;
        if self.used.events > self.spec.limits.max_events {
            return Err(PublishOrEnqueueError::LimitExceeded);
        }
        let event = EventId(self.fresh_id());
        let payload = self.event_payload(event, name, &data)?;
        // A read log keeps an event without subscribers too.
        self.charge_outgoing(payload.len().saturating_mul(subscribers.len().max(1)))?;
        self.note_event(name, &data);
        for to in subscribers {
            if to.merged && self.jobs.iter().any(|job| is_merged_for(job, to)) {
                continue;
            }
            let job = self.delivery(to, &payload);
            match to.requests.clone() {
                Some(requests) => {
                    let event = name.to_owned();
                    self.deliveries.push(EventDeliveryJobTemplate { job, event, requests });
                }
                None => self.jobs.push(job),
            }
        }
        Ok(event)
    }

    /// Returns the job that delivers an event to a subscriber. The job for merged events starts at
    /// the next full second, so that it covers all events until then.
    fn delivery(&mut self, to: &EventSubscriber, payload: &str) -> NewJob {
        let now = self.spec.call.now;
        let (kind, payload, available_at) = match to.merged {
            true => (MERGED_EVENTS_KIND, "{}", now.next_second()),
            false => (EVENT_KIND, payload, now),
        };
        NewJob {
            id: JobId(self.fresh_id()),
            workspace: self.spec.call.workspace,
            area: to.area.clone(),
            kind: kind.to_owned(),
            lane: to.lane,
            payload: payload.to_owned(),
            resource: None,
            available_at,
            max_attempts: to.max_attempts,
            timeout_ms: to.timeout_ms,
            dedupe_key: None,
        }
    }

    /// Enqueues a job of the area for the call's workspace.
    pub fn enqueue(&mut self, request: EnqueueJobRequest) -> Result<JobId, PublishOrEnqueueError> {
        let area = Arc::clone(&self.spec.area);
        let Some(kind) = area.jobs.get(&request.kind) else {
            return misuse(format!("{} declares no job {:?}", area.area, request.kind));
        };
        self.may_send(&request.payload)?;
        check_object(&request.payload).map_err(|what| {
            PublishOrEnqueueError::Misuse(format!("job {}: {what}", request.kind))
        })?;
        if !request.dedupe_key.as_deref().is_none_or(is_key) {
            return misuse(format!("a dedupe key has at most {MAX_KEY} characters, no U+0000"));
        }
        self.used.jobs += 1;
        let is_full = self.spec.in_job && self.has_full_queue(&area.area);
        if is_full || self.used.jobs > self.spec.limits.max_jobs {
            return Err(PublishOrEnqueueError::LimitExceeded);
        }
        self.charge_outgoing(request.payload.len())?;
        let id = JobId(self.fresh_id());
        self.jobs.push(NewJob {
            id,
            workspace: self.spec.call.workspace,
            area: area.area.clone(),
            kind: request.kind,
            lane: kind.lane,
            payload: request.payload,
            resource: request.resource,
            available_at: request.available_at.unwrap_or(self.spec.call.now),
            max_attempts: kind.max_attempts,
            timeout_ms: kind.timeout_ms,
            dedupe_key: request.dedupe_key,
        });
        Ok(id)
    }

    /// Sets the progress of the job that the call runs; stored with the end of the job's step.
    pub fn report_progress(&mut self, progress: JobProgress) -> Result<(), PublishOrEnqueueError> {
        if !self.spec.in_job {
            return misuse("only a job has progress");
        }
        let JobProgress { done, total } = progress;
        if done > total || i64::try_from(total).is_err() {
            return misuse(format!("progress {done} of {total} is more than all of it"));
        }
        self.progress = Some(progress);
        Ok(())
    }

    /// Returns the last reported progress of the job that the call runs.
    #[must_use]
    pub fn progress(&self) -> Option<JobProgress> {
        self.progress
    }

    fn may_send(&self, payload: &str) -> Result<(), PublishOrEnqueueError> {
        if !self.spec.writes {
            return misuse(READ_ONLY);
        }
        let fits = payload.len() as u64 <= self.spec.limits.max_payload_bytes;
        if fits { Ok(()) } else { Err(PublishOrEnqueueError::LimitExceeded) }
    }

    /// Counts the payload bytes of events and jobs against the call's limit, because they are held
    /// in memory until the commit.
    fn charge_outgoing(&mut self, bytes: usize) -> Result<(), PublishOrEnqueueError> {
        self.used.outgoing_bytes = self.used.outgoing_bytes.saturating_add(bytes as u64);
        let fits = self.used.outgoing_bytes <= self.spec.limits.max_outgoing_bytes;
        if fits { Ok(()) } else { Err(PublishOrEnqueueError::LimitExceeded) }
    }

    fn event_payload(
        &self,
        id: EventId,
        name: &str,
        data: &str,
    ) -> Result<String, PublishOrEnqueueError> {
        let payload = EventDeliveryPayload {
            id,
            name,
            data: serde_json::from_str(data)
                .map_err(|e| PublishOrEnqueueError::Misuse(e.to_string()))?,
            occurred_at: self.spec.call.now,
            workspace_id: self.spec.call.workspace,
        };
        serde_json::to_string(&payload).map_err(|e| PublishOrEnqueueError::Misuse(e.to_string()))
    }
}

/// Payload of a job that delivers an event to a subscriber.
#[derive(Serialize)]
struct EventDeliveryPayload<'a> {
    id: EventId,
    name: &'a str,
    data: &'a RawValue,
    occurred_at: Timestamp,
    workspace_id: WorkspaceId,
}

fn is_merged_for(job: &NewJob, to: &EventSubscriber) -> bool {
    job.kind == MERGED_EVENTS_KIND && job.area == to.area
}

fn is_key(key: &str) -> bool {
    key.chars().count() <= MAX_KEY && !key.contains('\0')
}

fn misuse<T>(what: impl Into<String>) -> Result<T, PublishOrEnqueueError> {
    Err(PublishOrEnqueueError::Misuse(what.into()))
}
