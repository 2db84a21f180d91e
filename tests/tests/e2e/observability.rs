//! The metrics that alerts need.

use assurance_tests::{Backend, Builder};
use reqwest::Method;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_name_faults_live_versions_refusals_and_the_process() {
    let builder = Builder::new(Backend::Sqlite).fixtures(&["trap"]).set("rates.enabled", true);
    let (host, ada) = builder.set("rates.session_burst", 60).start_with_owner().await;
    let trap = "/v1/workspaces/{ws}/fixtures/trap";
    ada.post(trap, &json!({})).await.problem(502, "area_fault");
    while ada.post(trap, &json!({})).await.status != 429 {}
    let page = host.operate(Method::GET, "/metrics").await.text();
    for series in [
        "assurance_area_faults_total{area=\"trap\",kind=\"trap\"}",
        "assurance_area_live_info{area=\"trap\",version=",
        "assurance_rate_limit_refusals_total{policy=\"session\"}",
        "assurance_build_info{version=",
        "process_start_time_seconds",
        "process_resident_memory_bytes",
    ] {
        let value = page.lines().find_map(|line| line.strip_prefix(series));
        let value = value.and_then(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok());
        assert!(value.is_some_and(|value| value > 0.0), "{series} is {value:?} in\n{page}");
    }
}
