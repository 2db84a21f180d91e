//! Declares an area (routes, collections, events, jobs) and dispatches calls to its handlers.
//! Schemas are generated only for the manifest. Each call builds this declaration again and
//! searches its routes linearly.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::{Ctx, JobCtx};
use crate::host::HostFunctions;
use crate::job::{Event, EventDelivery, Job, JobResult};
use crate::manifest::{Collection, Lane};
use crate::route::Route;
use crate::schema;
use crate::wit;
use crate::wit::assurance::area::manifest::{self, Capability, Manifest};
use crate::wit::assurance::area::types::{Problem, Reply, Request};

/// Kind of the jobs that deliver events; the subscriptions run them.
const EVENT_KIND: &str = "event";

type JobHandler = Box<dyn Fn(&JobCtx, &wit::Job) -> Result<wit::Outcome, wit::JobError>>;

struct EventDeclaration {
    name: &'static str,
    summary: &'static str,
    schema: fn() -> String,
}

struct JobDeclaration {
    name: &'static str,
    lane: Lane,
    max_attempts: u32,
    timeout_ms: u32,
    run: JobHandler,
}

struct Subscription {
    event: &'static str,
    run: JobHandler,
}

/// Function that runs several jobs of one kind together, with the kind and the maximum number.
struct BatchHandler {
    kind: &'static str,
    most: u32,
    run: BatchRunner,
}

type BatchRunner = Box<dyn Fn(&JobCtx, &[wit::Job]) -> Result<Vec<wit::Outcome>, wit::JobError>>;

/// Declaration of an area: its routes, collections, events, jobs, subscriptions and capabilities.
#[must_use]
pub struct Area {
    name: &'static str,
    version: &'static str,
    summary: &'static str,
    routes: Vec<Route>,
    collections: Vec<Collection>,
    blob_readers: &'static [&'static str],
    events: Vec<EventDeclaration>,
    jobs: Vec<JobDeclaration>,
    subscriptions: Vec<Subscription>,
    batches: Vec<BatchHandler>,
    capabilities: Vec<Capability>,
}

impl fmt::Debug for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Area")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}

impl Area {
    /// Declares an area with this name (`snake_case`) and semantic version.
    pub fn new(name: &'static str, version: &'static str) -> Self {
        Self {
            name,
            version,
            summary: "",
            routes: Vec::with_capacity(16),
            collections: Vec::with_capacity(8),
            blob_readers: &[],
            events: Vec::with_capacity(8),
            jobs: Vec::with_capacity(8),
            subscriptions: Vec::new(),
            batches: Vec::new(),
            capabilities: vec![Capability::Log],
        }
    }

    /// Sets the area's summary for operators, one line.
    pub fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// Adds a route (one operation).
    pub fn route(mut self, route: Route) -> Self {
        self.routes.push(route);
        self
    }

    /// Adds routes in the order of the API's documentation.
    pub fn routes(mut self, routes: impl IntoIterator<Item = Route>) -> Self {
        self.routes.extend(routes);
        self
    }

    /// Adds a collection of documents.
    pub fn collection(self, collection: Collection) -> Self {
        self.collections([collection])
    }

    /// Adds collections of documents.
    pub fn collections(mut self, collections: impl IntoIterator<Item = Collection>) -> Self {
        self.collections.extend(collections);
        self.uses(&[Capability::Documents])
    }

    /// Sets the areas that may read this area's blobs; `*` means all.
    pub fn blobs_readable_by(mut self, areas: &'static [&'static str]) -> Self {
        self.blob_readers = areas;
        self.uses(&[Capability::Blobs])
    }

    /// Adds an event that this area publishes.
    pub fn event<E: Event + JsonSchema>(mut self, summary: &'static str) -> Self {
        self.events.push(EventDeclaration {
            name: E::NAME,
            summary,
            schema: schema::published::<E>,
        });
        self.uses(&[Capability::Events])
    }

    /// Adds a kind of job, with its maximum number of attempts and its timeout for each attempt in
    /// milliseconds.
    pub fn job<J: Job + 'static>(
        mut self,
        lane: Lane,
        max_attempts: u32,
        timeout_ms: u32,
        run: impl Fn(&JobCtx, J) -> JobResult<J> + 'static,
    ) -> Self {
        let run: JobHandler =
            Box::new(move |ctx, job| run(ctx, payload(job)?).map(crate::Outcome::into_wit));
        self.jobs.push(JobDeclaration { name: J::KIND, lane, max_attempts, timeout_ms, run });
        self.uses(&[Capability::Jobs])
    }

    /// Subscribes to events with this name; `*` means all events. `run` is called for each
    /// delivery.
    pub fn on(
        mut self,
        event: &'static str,
        run: impl Fn(&JobCtx, EventDelivery) -> JobResult<EventDelivery> + 'static,
    ) -> Self {
        let run: JobHandler =
            Box::new(move |ctx, event| run(ctx, payload(event)?).map(crate::Outcome::into_wit));
        self.subscriptions.push(Subscription { event, run });
        self
    }

    /// Sets the lane, the maximum number of attempts and the timeout in milliseconds of event
    /// deliveries to this area. By default they have the lane `events`, 10 attempts and 30 s.
    pub fn events_in(mut self, lane: Lane, max_attempts: u32, timeout_ms: u32) -> Self {
        let run: JobHandler = Box::new(|_, _| unreachable!("the subscriptions run it"));
        self.jobs.push(JobDeclaration { name: EVENT_KIND, lane, max_attempts, timeout_ms, run });
        self
    }

    /// Lets one call run up to `most` waiting jobs of this kind, which [`Area::job`] has added, in
    /// one transaction. `run` returns an outcome for each, in their order; an error discards all
    /// effects, and each job runs by itself. [`Outcome::Continue`](crate::Outcome::Continue) runs a
    /// job by itself, without counting an attempt.
    pub fn job_batch<J: Job + 'static>(
        self,
        most: u32,
        run: impl Fn(&JobCtx, Vec<J>) -> Result<Vec<crate::Outcome<J>>, wit::JobError> + 'static,
    ) -> Self {
        self.batch(J::KIND, most, run)
    }

    /// Lets one call handle up to `most` waiting deliveries of events, of all subscriptions, like
    /// [`Area::job_batch`]. The deliveries of a batch are requested by the same document, or by
    /// none.
    pub fn event_batch(
        self,
        most: u32,
        run: impl Fn(
            &JobCtx,
            Vec<EventDelivery>,
        ) -> Result<Vec<crate::Outcome<EventDelivery>>, wit::JobError>
        + 'static,
    ) -> Self {
        self.batch(EVENT_KIND, most, run)
    }

    fn batch<P: Serialize + DeserializeOwned>(
        mut self,
        kind: &'static str,
        most: u32,
        run: impl Fn(&JobCtx, Vec<P>) -> Result<Vec<crate::Outcome<P>>, wit::JobError> + 'static,
    ) -> Self {
        let run: BatchRunner = Box::new(move |ctx, jobs| {
            let payloads = jobs.iter().map(payload).collect::<Result<_, _>>()?;
            Ok(run(ctx, payloads)?.into_iter().map(crate::Outcome::into_wit).collect())
        });
        self.batches.push(BatchHandler { kind, most, run });
        self
    }

    /// Adds capabilities. Those that collections, events and jobs need are added automatically.
    pub fn uses(mut self, capabilities: &[Capability]) -> Self {
        for &capability in capabilities {
            if !self.capabilities.contains(&capability) {
                self.capabilities.push(capability);
            }
        }
        self
    }

    /// Builds the manifest that the host reads.
    ///
    /// # Panics
    /// If the declaration contradicts itself. A test that builds the manifest finds this.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        Manifest {
            name: self.name.to_owned(),
            version: self.version.to_owned(),
            summary: self.summary.to_owned(),
            routes: self.routes.iter().map(Route::manifest).collect(),
            collections: self.collections.iter().map(Collection::manifest).collect(),
            blob_readers: self.blob_readers.iter().map(|&area| area.to_owned()).collect(),
            publishes: self.events.iter().map(EventDeclaration::manifest).collect(),
            subscriptions: self.subscriptions.iter().map(|on| on.event.to_owned()).collect(),
            jobs: self.jobs.iter().map(JobDeclaration::manifest).collect(),
            capabilities: self.capabilities.clone(),
        }
    }

    /// Executes a request to one operation.
    ///
    /// # Errors
    /// The problem that the handler returned.
    ///
    /// # Panics
    /// If this area has no such operation.
    pub fn handle(&self, host: HostFunctions, request: Request) -> Result<Reply, Problem> {
        let operation = &request.operation;
        let Some(route) = self.routes.iter().find(|route| route.facts.operation == operation)
        else {
            panic!("{} has no operation {operation}", self.name)
        };
        let (ctx, input) = Ctx::new(host, request, route.facts.path);
        (route.call)(&ctx, input)
    }

    /// Runs one job, or handles one event delivery.
    ///
    /// # Errors
    /// The error that the handler returned. A kind of job that this version does not have fails
    /// permanently.
    pub fn run(&self, host: HostFunctions, job: wit::Job) -> Result<wit::Outcome, wit::JobError> {
        let ctx = JobCtx::new(host, &job);
        let run = if job.kind == EVENT_KIND {
            let name = event_name(&job.payload);
            let wants = |on: &&Subscription| on.event == "*" || Some(on.event) == name.as_deref();
            self.subscriptions.iter().find(wants).map(|on| &on.run)
        } else {
            self.jobs.iter().find(|kind| kind.name == job.kind).map(|kind| &kind.run)
        };
        match run {
            Some(run) => run(&ctx, &job),
            None => Err(wit::JobError::Fail(format!("{} does not run {}", self.name, job.kind))),
        }
    }
}

impl Area {
    /// Returns the kinds of jobs that may run together, with the maximum number of jobs.
    #[must_use]
    pub fn batches(&self) -> Vec<(&'static str, u32)> {
        self.batches.iter().map(|batch| (batch.kind, batch.most)).collect()
    }

    /// Runs several jobs of one kind, or handles several deliveries of events.
    ///
    /// # Errors
    /// The error that the handler returned. A kind of job that does not run in batches fails.
    pub fn run_batch(
        &self,
        host: HostFunctions,
        jobs: Vec<wit::Job>,
    ) -> Result<Vec<wit::Outcome>, wit::JobError> {
        let Some(first) = jobs.first() else { return Ok(Vec::new()) };
        match self.batches.iter().find(|batch| batch.kind == first.kind) {
            Some(batch) => (batch.run)(&JobCtx::new(host, first), &jobs),
            None => Err(wit::JobError::Fail(format!("{} runs by itself only", first.kind))),
        }
    }
}

/// Parses a job's payload, or its checkpoint if it continues.
fn payload<P: DeserializeOwned>(job: &wit::Job) -> Result<P, wit::JobError> {
    let payload = job.checkpoint.as_ref().unwrap_or(&job.payload);
    serde_json::from_str(payload).map_err(|error| wit::JobError::Fail(format!("payload: {error}")))
}

/// Returns the name of the event in a delivery's payload.
fn event_name(payload: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct DeliveredEventName {
        name: String,
    }
    serde_json::from_str::<DeliveredEventName>(payload).ok().map(|named| named.name)
}

impl EventDeclaration {
    fn manifest(&self) -> manifest::Event {
        manifest::Event {
            name: self.name.to_owned(),
            summary: self.summary.to_owned(),
            schema: (self.schema)(),
        }
    }
}

impl JobDeclaration {
    fn manifest(&self) -> manifest::JobKind {
        manifest::JobKind {
            name: self.name.to_owned(),
            lane: self.lane.name().to_owned(),
            max_attempts: self.max_attempts,
            timeout_ms: self.timeout_ms,
        }
    }
}
