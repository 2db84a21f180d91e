//! Standard error on a full disk: only log lines are lost.

use assurance_tests::{Backend, Builder};
use reqwest::Method;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_on_a_full_disk_costs_lines_and_no_answer() {
    let (host, ada) = Builder::new(Backend::Sqlite)
        .areas(&["support"])
        .set("log.filter", "debug")
        .logs_to("/dev/full")
        .start_with_owner()
        .await;
    for count in 0..20 {
        ada.open_case(&format!("unlogged-{count}")).await.expect(201);
    }
    assert_eq!(host.operate(Method::GET, "/health/ready").await.status, 200);
    let dropped = host.metric("assurance_log_lines_dropped_total").await;
    assert!(dropped.is_some_and(|lines| lines > 20.0), "{dropped:?}");
}
