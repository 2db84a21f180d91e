//! Traits for jobs and events, and the results of a run.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::documents::DocumentError;
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::wit;
pub use crate::wit::JobError;

/// Data of an event that an area publishes.
pub trait Event: Serialize {
    /// Name of the event, dotted and in lower case: `support_case.created`.
    const NAME: &'static str;
}

/// Implements [`Event`] for a type: `event!(CaseClosed, "support_case.closed");`.
#[macro_export]
macro_rules! event {
    ($type:ty, $name:expr) => {
        impl $crate::Event for $type {
            const NAME: &'static str = $name;
        }
    };
}

/// Payload of a kind of job. It is also the checkpoint: [`Outcome::Continue`] has the payload of
/// the next run.
pub trait Job: Serialize + DeserializeOwned {
    /// Name of the kind of job, in `snake_case`.
    const KIND: &'static str;
}

/// Implements [`Job`] for a type: `job!(Expire, "expire");`.
#[macro_export]
macro_rules! job {
    ($type:ty, $kind:expr) => {
        impl $crate::Job for $type {
            const KIND: &'static str = $kind;
        }
    };
}

/// How much of a job's work is done, in units that its area chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Progress {
    /// Number of finished units of work, at most `total`.
    pub done: u64,
    /// All units that are known so far; a later step of the job may find more.
    pub total: u64,
}

/// Kind of a job that stands for many events. An area that subscribes to `*` and declares a job of
/// this kind, with the payload `{}`, does not receive the events: the job runs once after all
/// events of the workspace until then, at the end of their second. Events that the area also
/// subscribes to by their names are delivered to it.
pub const MERGED_EVENTS: &str = "events_merged";

/// An event as delivered to a subscriber, at least once.
#[derive(Debug, Serialize, Deserialize)]
pub struct EventDelivery {
    /// Id of the event, the same at every delivery.
    pub id: Uuid,
    /// Name of the event, for example `support_case.created`.
    pub name: String,
    /// Data of the event, a JSON object defined by the area that published it.
    pub data: Box<RawValue>,
    /// Time at which the event was published.
    pub occurred_at: Timestamp,
    /// Id of the document that requests the event (`x-requests-events`). Each such document has a
    /// delivery of its own. `None` if the area subscribes to the event by its name, or if the
    /// delivery is for all documents: then look for those that request the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
}

impl EventDelivery {
    /// Parses the event's data.
    ///
    /// # Errors
    /// If the data has another shape; the job then fails permanently.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, JobError> {
        serde_json::from_str(self.data.get())
            .map_err(|error| JobError::Fail(format!("{} with odd data: {error}", self.name)))
    }
}

/// Result of a successful job run, whose effects are committed: the job is finished, or runs again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<J> {
    /// The job is finished and does not run again.
    Done,
    /// The job runs again at once, with this payload.
    Continue(J),
    /// The job runs again at this time, as a new attempt. The queue shows the text as the reason.
    Retry(Timestamp, String),
}

/// Result of a job run. An error discards the effects of the run.
pub type JobResult<J> = Result<Outcome<J>, JobError>;

impl<J: Serialize> Outcome<J> {
    pub(crate) fn into_wit(self) -> wit::Outcome {
        match self {
            Self::Done => wit::Outcome::Done,
            Self::Continue(job) => wit::Outcome::Continue(
                serde_json::to_string(&job).expect("a payload that JSON can express"),
            ),
            Self::Retry(at, why) => wit::Outcome::Retry((at.0, why)),
        }
    }
}

impl From<DocumentError> for JobError {
    fn from(error: DocumentError) -> Self {
        Self::Retry(format!("documents: {error:?}"))
    }
}

impl From<Problem> for JobError {
    fn from(problem: Problem) -> Self {
        Self::Fail(problem.detail)
    }
}
