//! How long an operation takes and how it ends, measured without a lookup: the
//! handles are made once and kept with the route.

use std::sync::OnceLock;
use std::time::Duration;

/// One operation's measures, by the hundreds of the status.
#[derive(Debug)]
pub struct Meter {
    area: String,
    operation: String,
    by_class: [OnceLock<metrics::Histogram>; 6],
}

impl Meter {
    /// Measures of an area's operation; the host's own area is `host`.
    #[must_use]
    pub fn new(area: &str, operation: &str) -> Self {
        Self {
            area: area.to_owned(),
            operation: operation.to_owned(),
            by_class: std::array::from_fn(|_| OnceLock::new()),
        }
    }

    /// Counts one answer.
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
