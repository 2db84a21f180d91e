//! A fake host with a repository, and a queue that runs due jobs.

use area_sdk::testing::{EnqueuedJob, FakeHost, PublishedEvent, Request, USER};
use area_sdk::{Problem, Timestamp, Uuid};
use serde_json::{Value, json};

pub(super) const REPOSITORY: Uuid = Uuid::from_u128(0x10);

pub(super) struct World {
    pub(super) host: FakeHost,
    queue: Vec<EnqueuedJob>,
}

impl World {
    /// Creates a host with one repository at this time.
    pub(super) fn at(moment: &str) -> Self {
        let host = FakeHost::new(crate::area());
        let world = Self { host, queue: Vec::new() };
        world.put_repository(REPOSITORY, false);
        let moment: Timestamp = moment.parse().expect("a moment");
        world.host.advance(moment.seconds_since(world.host.now()));
        world
    }

    /// Creates a host on 6 May 2026 with one repository and its daily schedule.
    pub(super) fn with_schedule() -> (Self, Value) {
        let world = Self::at("2026-05-06T12:00:00Z");
        let schedule = world.create(json!({}));
        (world, schedule)
    }

    pub(super) fn put_repository(&self, id: Uuid, archived: bool) {
        let repository = json!({ "name": "shop", "default_branch": "main", "archived": archived });
        self.host.put_document("catalog.repositories", &id.to_string(), repository);
    }

    /// Moves the clock to a time and runs each job when it is due.
    pub(super) fn go_to(&mut self, moment: &str) {
        let moment: Timestamp = moment.parse().expect("a moment");
        loop {
            self.queue.append(&mut self.host.take_jobs());
            let now = self.host.now();
            self.queue.sort_by_key(|job| job.available_at.unwrap_or(now));
            let Some(next) = self.queue.first() else { break };
            let due = next.available_at.unwrap_or(now).max(now);
            if due > moment {
                break;
            }
            self.host.advance(due.seconds_since(now));
            let job = self.queue.remove(0);
            self.host.run(&job.kind, job.payload, 1).expect("done");
        }
        self.host.advance(moment.seconds_since(self.host.now()));
    }

    /// Moves the clock to a time without running jobs, then runs due jobs.
    pub(super) fn be_away_until(&mut self, moment: &str) {
        let until: Timestamp = moment.parse().expect("a moment");
        self.host.advance(until.seconds_since(self.host.now()));
        self.go_to(moment);
    }

    /// Delivers the event that a user cancelled this job.
    pub(super) fn cancel(&self, job: &EnqueuedJob) {
        let data = json!({
            "job_id": job.id, "area": "schedules", "kind": job.kind, "resource_id": job.resource,
            "actor_id": USER,
        });
        self.host.deliver(Uuid::from_u128(6), "job.cancelled", data).expect("handled");
    }

    /// Ends every running audit with a result of each part.
    pub(super) fn end_audits(&self, status: &str) {
        let running = Request::to("list_audits").with("limit", 50).with("state", "running");
        let running = self.host.call(running).expect("a list").body;
        for audit in running["items"].as_array().expect("items") {
            for part in ["findings", "dependencies", "ownership"] {
                let event = format!("audit.{part}_imported");
                let data = json!({ "audit_id": audit["id"], "status": status });
                self.host.deliver(Uuid::from_u128(5), &event, data).expect("taken in");
            }
        }
    }

    /// Requests a schedule that is due at 03:30 in Berlin every day, with this change.
    pub(super) fn ask(&self, change: Value) -> Result<Value, Problem> {
        let mut body = json!({
            "name": "Nightly", "cadence": "daily", "local_hour": 3, "local_minute": 30,
            "timezone": "Europe/Berlin", "repository_id": REPOSITORY,
        });
        for (name, value) in change.as_object().expect("an object") {
            body[name] = value.clone();
        }
        let made = self.host.call(Request::to("create_audit_schedule").json(body));
        made.map(|made| made.body)
    }

    pub(super) fn create(&self, change: Value) -> Value {
        self.ask(change).expect("a schedule")
    }

    pub(super) fn request(&self, operation: &str, schedule: &Value) -> Request {
        Request::to(operation).with("schedule_id", schedule["id"].clone())
    }

    pub(super) fn show(&self, schedule: &Value) -> Value {
        self.host.call(self.request("get_audit_schedule", schedule)).expect("a schedule").body
    }

    pub(super) fn published(&self, name: &str) -> Vec<Value> {
        let told = self.host.events().into_iter().filter(|event| event.name == name);
        told.map(|event: PublishedEvent| event.data).collect()
    }

    pub(super) fn audits(&self) -> Vec<Value> {
        let list = Request::to("list_audits").with("limit", 50);
        let mut list = self.host.call(list).expect("a list").body;
        list["items"].as_array_mut().map(std::mem::take).expect("items")
    }
}
