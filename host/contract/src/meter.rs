//! Request metrics of one operation. The handles are created once and kept with
//! the route, so recording needs no lookup.

use std::sync::OnceLock;
use std::time::Duration;

/// Request durations of one operation, by status class (2xx, 4xx, …), exported
/// as metrics.
#[derive(Debug)]
pub struct OperationRequestDurations {
    area: String,
    operation: String,
    by_class: [OnceLock<metrics::Histogram>; 6],
}

impl OperationRequestDurations {
    /// Creates the request metrics of an area's operation; the host's own
    /// operations have the area `host`.
    #[must_use]
    pub fn new(area: &str, operation: &str) -> Self {
        Self {
            area: area.to_owned(),
            operation: operation.to_owned(),
            by_class: std::array::from_fn(|_| OnceLock::new()),
        }
    }

    /// Returns the operation id that the metrics belong to.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// Records the status and the duration of one response.
    pub fn answered(&self, status: u16, took: Duration) {
        let class = usize::from(status / 100).min(5);
        let histogram = self.by_class[class].get_or_init(|| {
            metrics::histogram!(
                "http_request_duration_seconds",
                "area" => self.area.clone(),
                "operation" => self.operation.clone(),
                "status" => format!("{class}xx"),
            )
        });
        histogram.record(took.as_secs_f64());
    }
}
