//! Acknowledged writes under mixed load: each is in the database once, with
//! its content and its event, and nothing of a refused one is.

use assurance_tests::Backend;
use assurance_tests::ledger::{Plan, Report, run};

fn is_balanced(report: &Report) {
    println!("{report}");
    assert!(report.defects().is_empty(), "{report}");
    assert_eq!(report.responses(500), 0, "{report}");
    assert!(report.acknowledged > 50, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_write_is_there_once() {
    is_balanced(&run(&Plan::short(Backend::Sqlite), |_| {}).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_hang_up_harm_nobody() {
    let plan = Plan { hang_up: 8, ..Plan::short(Backend::Sqlite) };
    is_balanced(&run(&plan, |_| {}).await);
}
