//! Numbers of requests and errors of each area, from the metrics of one node.

use std::collections::BTreeMap;

use super::super::operators::OperatorsClient;
use super::super::table::NONE;

/// Number of requests of one area since the node started, and of the failed
/// ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AreaRequestCounts {
    requests: u64,
    /// Number of the area's requests whose response had a status of 500 or
    /// more.
    failed: u64,
}

impl AreaRequestCounts {
    /// Returns the table cells: number of requests, and share of failed ones in
    /// percent.
    pub(super) fn cells(self) -> [String; 2] {
        if self.requests == 0 {
            return ["0".to_owned(), NONE.to_owned()];
        }
        let percent = 100.0 * self.failed as f64 / self.requests as f64;
        [self.requests.to_string(), format!("{percent:.1}")]
    }
}

/// Reads the request figures of all areas that received requests, by area name,
/// from the metrics of one node.
pub(super) async fn read(
    operators: &OperatorsClient,
) -> anyhow::Result<BTreeMap<String, AreaRequestCounts>> {
    Ok(parse(&operators.text("/metrics").await?))
}

/// Adds up the request counts of each area's operations in metrics in the
/// Prometheus text format; by area name.
fn parse(metrics: &str) -> BTreeMap<String, AreaRequestCounts> {
    let mut areas: BTreeMap<String, AreaRequestCounts> = BTreeMap::new();
    for line in metrics.lines() {
        let Some(rest) = line.strip_prefix("http_request_duration_seconds_count{") else {
            continue;
        };
        let Some((labels, count)) = rest.rsplit_once("} ") else { continue };
        let (Some(area), Ok(count)) = (label(labels, "area"), count.parse::<u64>()) else {
            continue;
        };
        let area = areas.entry(area.to_owned()).or_default();
        area.requests += count;
        if label(labels, "status") == Some("5xx") {
            area.failed += count;
        }
    }
    areas
}

/// Returns the value of a label of a Prometheus sample; `None` if it has no
/// such label. The values contain no quotes.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = labels.split("\",");
    let value = pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix("=\""))?;
    Some(value.trim_end_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operations_of_an_area_are_added_up() {
        let metrics = concat!(
            "# TYPE http_request_duration_seconds histogram\n",
            "http_request_duration_seconds_count{area=\"a\",operation=\"x\",status=\"2xx\"} 6\n",
            "http_request_duration_seconds_count{area=\"a\",operation=\"y\",status=\"5xx\"} 2\n",
            "http_request_duration_seconds_count{area=\"b\",operation=\"z\",status=\"4xx\"} 1\n",
            "http_request_duration_seconds_sum{area=\"b\",operation=\"z\",status=\"4xx\"} 0.5\n",
        );
        let areas = parse(metrics);
        assert_eq!(areas["a"].cells(), ["8", "25.0"]);
        assert_eq!(areas["b"].cells(), ["1", "0.0"]);
        assert_eq!(AreaRequestCounts::default().cells(), ["0", "-"]);
    }
}
