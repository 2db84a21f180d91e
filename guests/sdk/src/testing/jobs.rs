//! Runs an area's jobs and delivers events to it.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{EnqueuedJob, FakeHost};
use crate::wit::{self, JobError, Outcome};

impl FakeHost {
    /// Runs a job, or an event delivery if `kind` is `event`.
    ///
    /// # Errors
    /// The error that the job returned.
    pub fn run(&self, kind: &str, payload: Value, attempt: u32) -> Result<Outcome, JobError> {
        let job = wit::Job {
            call: self.circumstances(),
            id: Uuid::from_u128(u128::from(self.0.calls.get())).to_string(),
            kind: kind.to_owned(),
            payload: payload.to_string(),
            attempt,
            checkpoint: None,
        };
        self.0.in_job.set(true);
        let result = self.attempt(|host| self.0.area.run(host, job.clone()));
        self.0.in_job.set(false);
        result
    }

    /// Runs all steps of a job and returns the outcome of the last one.
    ///
    /// # Panics
    /// If a step returns an error.
    #[track_caller]
    pub fn run_to_end(&self, kind: &str, mut payload: Value, attempt: u32) -> Outcome {
        loop {
            match self.run(kind, payload, attempt).expect("a step without an error") {
                Outcome::Continue(next) => {
                    payload = serde_json::from_str(&next).expect("a payload of JSON");
                }
                end => return end,
            }
        }
    }

    /// Runs all steps of the enqueued jobs, whenever they are due. Jobs that these jobs enqueue
    /// stay enqueued. A job that enqueues another one with its own kind and deduplication key
    /// enqueues nothing. Returns the outcome of each job.
    ///
    /// # Panics
    /// If a step returns an error.
    pub fn run_jobs(&self) -> Vec<Outcome> {
        let jobs = self.take_jobs();
        self.0.taken_jobs.borrow_mut().clone_from(&jobs);
        let run = |job: EnqueuedJob| {
            let outcome = self.run_to_end(&job.kind, job.payload, 1);
            self.0.taken_jobs.borrow_mut().remove(0);
            outcome
        };
        jobs.into_iter().map(run).collect()
    }

    /// Runs jobs of one kind together, or deliveries of events if `kind` is `event`.
    ///
    /// # Errors
    /// The error that the batch returned.
    pub fn run_batch(&self, kind: &str, payloads: &[Value]) -> Result<Vec<Outcome>, JobError> {
        let call = self.circumstances();
        let jobs = payloads.iter().zip(1_u128..).map(|(payload, number)| wit::Job {
            call: call.clone(),
            id: Uuid::from_u128((u128::from(self.0.calls.get()) << 8) + number).to_string(),
            kind: kind.to_owned(),
            payload: payload.to_string(),
            attempt: 1,
            checkpoint: None,
        });
        let jobs: Vec<_> = jobs.collect();
        self.0.in_job.set(true);
        let result = self.attempt(|host| self.0.area.run_batch(host, jobs.clone()));
        self.0.in_job.set(false);
        result
    }

    /// Delivers an event with this id to the area.
    ///
    /// # Errors
    /// The error that the subscriber returned.
    pub fn deliver(&self, id: Uuid, name: &str, data: Value) -> Result<Outcome, JobError> {
        let occurred_at = self.now();
        let event = json!({ "id": id, "name": name, "data": data, "occurred_at": occurred_at });
        self.run("event", event, 1)
    }

    /// Delivers an event with this id to the area for one document that requests it.
    ///
    /// # Errors
    /// The error that the subscriber returned.
    pub fn deliver_requested(
        &self,
        by: &str,
        (id, name, data): (Uuid, &str, Value),
        attempt: u32,
    ) -> Result<Outcome, JobError> {
        let occurred_at = self.now();
        let event = json!({
            "id": id, "name": name, "data": data, "occurred_at": occurred_at, "requested_by": by,
        });
        self.run("event", event, attempt)
    }
}
