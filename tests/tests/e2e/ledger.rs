//! Acknowledged writes under mixed load: each is stored once, with its content and event, and
//! nothing of refused ones is.

use assurance_tests::ledger::{Plan, Report, run};
use assurance_tests::{Backend, both_backends};

fn is_balanced(report: &Report) {
    println!("{report}");
    assert!(report.defects().is_empty(), "{report}");
    assert_eq!(report.by_status().get(&500), None, "{report}");
    assert!(report.acknowledged > 20, "{report}");
}

both_backends! {
    async fn every_acknowledged_write_is_there_once(backend) {
        is_balanced(&run(&Plan::short(backend), |_| {}).await);
    }

    async fn clients_that_hang_up_harm_nobody(backend) {
        let plan = Plan { hang_up: 8, ..Plan::short(backend) };
        is_balanced(&run(&plan, |_| {}).await);
    }

    async fn killed_nodes_keep_every_acknowledged_write(backend) {
        let plan = Plan { kills: 3, ..Plan::short(backend) };
        is_balanced(&run(&plan, |_| {}).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_keep_every_acknowledged_write() {
    if Backend::Postgres.is_there() {
        let plan = Plan { nodes: 3, ..Plan::short(Backend::Postgres) };
        is_balanced(&run(&plan, |_| {}).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_hang_up_harm_nobody_on_three_nodes() {
    if Backend::Postgres.is_there() {
        let plan = Plan { nodes: 3, hang_up: 8, ..Plan::short(Backend::Postgres) };
        is_balanced(&run(&plan, |_| {}).await);
    }
}
