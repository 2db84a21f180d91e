//! Creates the series of counters that alerts watch. Prometheus' `increase` does not see the event
//! with which a series appears, so each series of an area exists before its first event.

use metrics::counter;

use assurance_core::domain::job::Lane;
use assurance_service::app::App;

/// Kinds of faults, as in recordings.
const FAULT_KINDS: [&str; 6] =
    ["trap", "deadline", "cpu_time", "out_of_memory", "limit", "contract"];
/// Outcomes of job runs that alerts watch.
const JOB_OUTCOMES: [&str; 3] = ["failed", "dead", "lease_lost"];

/// Creates the counter series of all live areas; existing series are unchanged.
pub(super) fn create(app: &App) {
    for area in app.registry.snapshot().areas() {
        create_for(&area.manifest.name);
    }
}

fn create_for(area: &str) {
    let area = area.to_owned();
    counter!("assurance_canary_rollbacks_total", "area" => area.clone()).increment(0);
    for kind in FAULT_KINDS {
        counter!("assurance_area_faults_total", "area" => area.clone(), "kind" => kind)
            .increment(0);
    }
    for lane in Lane::ALL {
        for outcome in JOB_OUTCOMES {
            let (area, lane) = (area.clone(), lane.as_str());
            counter!(
                "assurance_job_runs_total", "area" => area, "lane" => lane, "outcome" => outcome
            )
            .increment(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    #[test]
    fn counters_of_alerts_exist_before_the_first_event() {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            counter!("assurance_canary_rollbacks_total", "area" => "support").increment(2);
            create_for("support");
        });
        let text = recorder.handle().render();
        for line in [
            r#"assurance_canary_rollbacks_total{area="support"} 2"#,
            r#"assurance_area_faults_total{area="support",kind="trap"} 0"#,
            r#"assurance_job_runs_total{area="support",lane="ingest",outcome="dead"} 0"#,
        ] {
            assert!(text.contains(line), "no {line} in {text}");
        }
    }
}
