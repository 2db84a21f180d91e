//! Tests of jobs of merged events.

use super::*;
use crate::Backend;
use assurance_core::domain::job::MERGED_EVENTS_KIND;

fn merged(n: u128) -> NewJob {
    NewJob { kind: MERGED_EVENTS_KIND.into(), resource: None, ..job(n) }
}

on_both! {
    async fn a_run_that_has_lost_its_lease_removes_no_waiting_job(store: &Store) {
        let queue = Queue(store);
        let absorb = async |leased: &LeasedJob| {
            let mut c = store.writer().await.unwrap();
            absorb(&mut c, leased, Timestamp(5)).await.unwrap()
        };
        queue.insert(&[merged(1)]).await;
        let stalled = queue.claim(Uuid::new_v4(), 1, 5).await.remove(0);
        assert_eq!(queue.recover(5).await, 1);
        let again = queue.claim(Uuid::new_v4(), 1, 5).await.remove(0);
        queue.insert(&[merged(2), merged(3)]).await;
        assert_eq!(absorb(&stalled).await, 0);
        assert_eq!(absorb(&again).await, 2);
        queue.end(&again, JobRunEndKind::Done { keep: false }, 6).await.unwrap();
        queue.insert(&[merged(4)]).await;
        assert_eq!(absorb(&again).await, 0);
    }
}

#[tokio::test]
async fn a_waiting_job_stands_for_later_events_until_its_first_step() {
    let fresh = testing::fresh(Backend::Sqlite).await.unwrap();
    let queue = Queue(&fresh.store);
    let publish = async |n| {
        let mut sql = Sql::new(Backend::Sqlite, "");
        let due = NewJob { available_at: Timestamp(4), ..merged(n) };
        push_insert_merged(&mut sql, &[(&due, Timestamp(3))]);
        let mut c = fresh.store.writer().await.unwrap();
        changed_rows(&mut c, sql).await.unwrap()
    };
    assert_eq!((publish(1).await, publish(2).await), (1, 0));
    let leased = queue.claim(Uuid::new_v4(), 1, 4).await.remove(0);
    let goes_on = JobRunEndKind::Continue { checkpoint: "{}".into(), requeue: true };
    queue.end(&leased, goes_on, 4).await.unwrap();
    assert_eq!(publish(3).await, 1);
}

#[tokio::test]
async fn of_equal_jobs_that_are_enqueued_together_the_one_due_first_waits() {
    let fresh = testing::fresh(Backend::Sqlite).await.unwrap();
    let due = |n: u128, at| NewJob { available_at: Timestamp(at), ..merged(n) };
    let other = NewJob { area: "others".into(), ..due(5, 9) };
    let jobs = [due(1, 9), due(2, 9), due(3, 8), due(4, 9), other, due(6, 2)];
    let mut sql = Sql::new(Backend::Sqlite, "");
    push_insert_merged(&mut sql, &jobs.each_ref().map(|job| (job, Timestamp(3))));
    let mut c = fresh.store.writer().await.unwrap();
    // The last one is due already and makes none superfluous.
    assert_eq!(changed_rows(&mut c, sql).await.unwrap(), 4);
    let mut sql = Sql::new(Backend::Sqlite, "");
    push_insert_merged(&mut sql, &[(&due(7, 8), Timestamp(3)), (&due(8, 7), Timestamp(3))]);
    assert_eq!(changed_rows(&mut c, sql).await.unwrap(), 1);
}
