//! Events of the area `queue`.

use area_sdk::prelude::*;

/// Data of the event `job.cancelled`.
#[derive(Clone, Debug, Deserialize)]
pub struct JobCancelled {
    /// Id of the cancelled job.
    pub job_id: Uuid,
    /// Area of the job.
    pub area: String,
    /// Kind of the job.
    pub kind: String,
    /// Resource of the job.
    pub resource_id: Option<Uuid>,
}

impl JobCancelled {
    /// Name of the event.
    pub const NAME: &'static str = "job.cancelled";

    /// Returns the resource of the job; `None` if the job is of another area or kind.
    #[must_use]
    pub fn resource_of<J: Job>(&self, area: &str) -> Option<Uuid> {
        self.resource_id.filter(|_| self.area == area && self.kind == J::KIND)
    }
}
