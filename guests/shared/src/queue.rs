//! Events of the area `queue`.

use area_sdk::prelude::*;

/// Data of the event `job.cancelled`.
#[derive(Clone, Debug, Deserialize)]
pub struct JobCancelled {
    /// Id of the cancelled job.
    pub job_id: Uuid,
    /// Name of the area to which the cancelled job belongs.
    pub area: String,
    /// Kind of the cancelled job.
    pub kind: String,
    /// Id of the resource that the cancelled job is about; `None` if it has none.
    pub resource_id: Option<Uuid>,
}

impl JobCancelled {
    /// Name of the event that this is the data of.
    pub const NAME: &'static str = "job.cancelled";

    /// Returns the resource of the cancelled job; `None` if the job is of another area or kind.
    #[must_use]
    pub fn resource_of<J: Job>(&self, area: &str) -> Option<Uuid> {
        self.resource_id.filter(|_| self.area == area && self.kind == J::KIND)
    }
}
