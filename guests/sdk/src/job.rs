//! Work for later, and what happened: the traits that name them, and how a run
//! ends.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::documents::DocumentError;
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::wit;
pub use crate::wit::JobError;

/// An event's data, as its area publishes it.
pub trait Event: Serialize {
    /// Dotted, lower case: `support_case.created`.
    const NAME: &'static str;
}

/// A kind of job, by its payload. The payload is also the checkpoint: a run
/// that continues leaves the payload the next run begins with.
pub trait Job: Serialize + DeserializeOwned {
    /// `snake_case`.
    const KIND: &'static str;
}

/// An event as it is delivered to a subscriber, at least once.
#[derive(Debug, Serialize, Deserialize)]
pub struct EventDelivery {
    /// The same at every delivery.
    pub id: Uuid,
    /// Which event.
    pub name: String,
    /// What its area says of it: a JSON object.
    pub data: Box<RawValue>,
    /// When it happened.
    pub occurred_at: Timestamp,
}

impl EventDelivery {
    /// The data as a type.
    ///
    /// # Errors
    /// The job fails for good where the data is not that.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, JobError> {
        serde_json::from_str(self.data.get())
            .map_err(|error| JobError::Fail(format!("{} with odd data: {error}", self.name)))
    }
}

/// How a run ends that keeps what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<J> {
    /// Finished.
    Done,
    /// Run again at once, with this payload.
    Continue(J),
    /// Run again at that moment, as a new attempt; the text is for the queue.
    Retry(Timestamp, String),
}

/// How a run ends. An error drops what it did.
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
