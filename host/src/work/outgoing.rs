//! Events and jobs that go out with the commit.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::body::check_object;
use super::{UnitOfWork, WorkError};
use crate::domain::id::{EventId, JobId, WorkspaceId};
use crate::domain::job::{EVENT_KIND, NewJob};
use crate::domain::time::Timestamp;

/// Characters of a dedupe key: an index of the database holds it.
const MAX_KEY: usize = 200;

/// A job a guest wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// A kind of the area's manifest.
    pub kind: String,
    /// A JSON object.
    pub payload: String,
    /// What it is about.
    pub resource: Option<Uuid>,
    /// Not before; nothing: at once.
    pub available_at: Option<Timestamp>,
    /// Of jobs of one kind with one key only one waits or runs; at most 200
    /// characters.
    pub dedupe_key: Option<String>,
}

impl UnitOfWork {
    /// Tells an event to its subscribers: one job each.
    pub fn publish(&mut self, name: &str, data: String) -> Result<EventId, WorkError> {
        let area = Arc::clone(&self.spec.area);
        let Some(subscribers) = area.events.get(name) else {
            return misuse(format!("{} does not publish {name:?}", area.area));
        };
        self.may_send(&data)?;
        check_object(&data).map_err(|what| WorkError::Misuse(format!("event {name}: {what}")))?;
        self.used.events += 1;
        if self.used.events > self.spec.limits.max_events {
            return Err(WorkError::LimitExceeded);
        }
        let event = EventId(self.fresh_id());
        self.note_event(name, &data);
        let payload = self.event_payload(event, name, data)?;
        self.charge_outgoing(payload.len().saturating_mul(subscribers.len()))?;
        for to in subscribers {
            let job = NewJob {
                id: JobId(self.fresh_id()),
                workspace: self.spec.call.workspace,
                area: to.area.clone(),
                kind: EVENT_KIND.to_owned(),
                lane: to.lane,
                payload: payload.clone(),
                resource: None,
                available_at: self.spec.call.now,
                max_attempts: to.max_attempts,
                timeout_ms: to.timeout_ms,
                dedupe_key: None,
            };
            self.jobs.push(job);
        }
        Ok(event)
    }

    /// Puts a job into the queue.
    pub fn enqueue(&mut self, wish: Wish) -> Result<JobId, WorkError> {
        let area = Arc::clone(&self.spec.area);
        let Some(kind) = area.jobs.get(&wish.kind) else {
            return misuse(format!("{} declares no job {:?}", area.area, wish.kind));
        };
        self.may_send(&wish.payload)?;
        check_object(&wish.payload)
            .map_err(|what| WorkError::Misuse(format!("job {}: {what}", wish.kind)))?;
        if !wish.dedupe_key.as_deref().is_none_or(is_key) {
            return misuse(format!("a dedupe key has at most {MAX_KEY} characters, no U+0000"));
        }
        self.used.jobs += 1;
        let (workspace, most) = (self.spec.call.workspace, self.spec.limits.max_waiting_jobs);
        let is_full = self.store.has_full_queue(workspace, &area.area, most);
        if is_full || self.used.jobs > self.spec.limits.max_jobs {
            return Err(WorkError::LimitExceeded);
        }
        self.charge_outgoing(wish.payload.len())?;
        let id = JobId(self.fresh_id());
        self.jobs.push(NewJob {
            id,
            workspace: self.spec.call.workspace,
            area: area.area.clone(),
            kind: wish.kind,
            lane: kind.lane,
            payload: wish.payload,
            resource: wish.resource,
            available_at: wish.available_at.unwrap_or(self.spec.call.now),
            max_attempts: kind.max_attempts,
            timeout_ms: kind.timeout_ms,
            dedupe_key: wish.dedupe_key,
        });
        Ok(id)
    }

    fn may_send(&self, payload: &str) -> Result<(), WorkError> {
        if !self.spec.writes {
            return misuse("the route writes nothing".to_owned());
        }
        let fits = payload.len() as u64 <= self.spec.limits.max_payload_bytes;
        if fits { Ok(()) } else { Err(WorkError::LimitExceeded) }
    }

    /// What goes out is held in memory until the commit.
    fn charge_outgoing(&mut self, bytes: usize) -> Result<(), WorkError> {
        self.used.outgoing_bytes = self.used.outgoing_bytes.saturating_add(bytes as u64);
        let fits = self.used.outgoing_bytes <= self.spec.limits.max_outgoing_bytes;
        if fits { Ok(()) } else { Err(WorkError::LimitExceeded) }
    }

    fn event_payload(&self, id: EventId, name: &str, data: String) -> Result<String, WorkError> {
        let payload = EventPayload {
            id,
            name,
            data: RawValue::from_string(data).map_err(|e| WorkError::Misuse(e.to_string()))?,
            occurred_at: self.spec.call.now,
            workspace_id: self.spec.call.workspace,
        };
        serde_json::to_string(&payload).map_err(|e| WorkError::Misuse(e.to_string()))
    }
}

/// What a subscriber's job is given.
#[derive(Serialize)]
struct EventPayload<'a> {
    id: EventId,
    name: &'a str,
    data: Box<RawValue>,
    occurred_at: Timestamp,
    workspace_id: WorkspaceId,
}

fn is_key(key: &str) -> bool {
    key.chars().count() <= MAX_KEY && !key.contains('\0')
}

fn misuse<T>(what: String) -> Result<T, WorkError> {
    Err(WorkError::Misuse(what))
}
