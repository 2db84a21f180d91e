//! Each alert has a summary, a severity and its first step, and uses only described metrics. That
//! Prometheus accepts the file is checked by promtool in an end-to-end test.

use std::collections::BTreeSet;

use crate::check;
use crate::source::read;

const RULES: &str = "host/deploy/alerts.yml";

/// Prefixes of the names of this service's metrics.
const PREFIXES: [&str; 3] = ["assurance_", "http_", "process_"];

/// The series of a histogram.
const HISTOGRAM_SERIES: [&str; 3] = ["_bucket", "_sum", "_count"];

#[test]
fn every_alert_has_a_first_step_and_uses_described_metrics() {
    let (rules, described) = (read(RULES), described_metrics(&read("host/OPERATING.md")));
    let alerts: Vec<&str> = rules.split("\n      - alert: ").skip(1).collect();
    assert!(!alerts.is_empty(), "{RULES} has no alert");
    let wrong: Vec<String> =
        alerts.into_iter().flat_map(|alert| violations(alert, &described)).collect();
    check(RULES, &wrong);
}

/// Returns what is wrong with the text of one alert.
fn violations(alert: &str, described: &BTreeSet<String>) -> Vec<String> {
    let name = alert.lines().next().unwrap_or_default();
    let members = ["expr: ", "{severity: ", "summary: ", "runbook: "];
    let missing = members.into_iter().filter(|member| !alert.contains(member));
    let missing = missing.map(|member| format!("{name} has no {member}"));
    let unknown = metrics(alert).into_iter().filter(|metric| !described.contains(*metric));
    missing.chain(unknown.map(|metric| format!("{name}: {metric} is not described"))).collect()
}

fn metrics(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix))).collect()
}

/// Returns the names in the guide's table of metrics, with the series of histograms.
fn described_metrics(guide: &str) -> BTreeSet<String> {
    let section = guide.split("\n## Metrics\n").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = section.expect("a section of metrics").lines().filter(|row| row.starts_with("| `"));
    let mut names = BTreeSet::new();
    for row in rows {
        let series: &[&str] = if row.contains("| histogram |") { &HISTOGRAM_SERIES } else { &[""] };
        for metric in metrics(row.split(" | ").next().unwrap_or_default()) {
            names.extend(series.iter().map(|series| format!("{metric}{series}")));
        }
    }
    names
}

#[test]
fn the_check_sees_missing_steps_and_unknown_metrics() {
    let guide =
        "\n## Metrics\n| `http_seconds` | histogram | |\n| `assurance_a_total` | counter |\n";
    let described = described_metrics(guide);
    assert!(described.contains("http_seconds_bucket") && described.contains("assurance_a_total"));
    let alert = "Name\n expr: rate(http_seconds_sum[5m]) > assurance_b\n labels: {severity: warning}\n \
                 summary: s\n";
    let expected = ["Name has no runbook: ", "Name: assurance_b is not described"];
    assert_eq!(violations(alert, &described), expected);
}
