//! Tests of the limits on what the host holds for one call.

use super::*;
use crate::{BlobError, EventOrJobError, JobRequest};
use assurance_store::Quota;
use assurance_store::testing::on_both;

on_both! {
    async fn what_goes_out_is_bounded_in_bytes(store: &Store) {
        let area = Area::installed(store).await;
        let wish = |bytes: usize| JobRequest {
            kind: "tidy".into(),
            payload: format!(r#"{{"x":"{}"}}"#, "y".repeat(bytes - 8)),
            ..JobRequest::default()
        };
        let unit = || area.with(|spec| {
            spec.limits.max_payload_bytes = 1_000;
            spec.limits.max_outgoing_bytes = 2_500;
        });
        let exceeded = |told: Result<(), EventOrJobError>| {
            assert!(matches!(told, Err(EventOrJobError::LimitExceeded)), "{told:?}");
        };
        let mut alone = unit();
        exceeded(alone.enqueue(wish(1_001)).map(drop));
        exceeded(alone.publish("item.made", wish(1_001).payload).map(drop));
        let mut many = unit();
        many.enqueue(wish(1_000)).unwrap();
        many.publish("item.made", wish(1_000).payload).unwrap();
        exceeded(many.enqueue(wish(1_000)).map(drop));
    }

    async fn an_area_has_so_many_jobs_waiting_in_a_workspace(store: &Store) {
        let area = Area::installed(store).await;
        let wish = || JobRequest {
            kind: "tidy".into(),
            payload: "{}".into(),
            ..JobRequest::default()
        };
        let unit = |area: &Area| area.with(|spec| spec.limits.max_waiting_jobs = 3);
        let mut first = unit(&area);
        for _ in 0..3 {
            first.enqueue(wish()).unwrap();
        }
        first.commit(CommitAdditions::default()).await.unwrap();
        // The queue is counted in the background, so this waits.
        let begun = std::time::Instant::now();
        let refused = loop {
            let mut more = unit(&area);
            more.enqueue(wish()).unwrap();
            match more.commit(CommitAdditions::default()).await {
                Err(error) => break error,
                Ok(()) => assert!(begun.elapsed().as_secs() < 10, "more jobs are taken"),
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        };
        assert!(matches!(refused, Error::QueueFull(_)), "{refused:?}");
        let mut job = area.with(|spec| {
            spec.limits.max_waiting_jobs = 3;
            spec.in_job = true;
        });
        let told = job.enqueue(wish());
        assert!(matches!(told, Err(EventOrJobError::LimitExceeded)), "{told:?}");
        // Calls that enqueue nothing, and other workspaces, go on.
        let mut other = unit(&area);
        other.write("items", vec![create("1", r#"{"name":"a"}"#)]).await.unwrap();
        other.commit(CommitAdditions::default()).await.unwrap();
        let mut elsewhere = unit(&area.elsewhere());
        elsewhere.enqueue(wish()).unwrap();
        elsewhere.commit(CommitAdditions::default()).await.unwrap();
    }

    async fn an_area_keeps_so_many_bytes_in_a_workspace(store: &Store) {
        let area = Area::installed(store).await;
        let quota = Quota { area: 1_000, workspace: 1_000_000 };
        let unit = |area: &Area| area.with(|spec| spec.limits.quota = quota);
        let body = format!(r#"{{"name":"{}"}}"#, "x".repeat(500));
        let mut first = unit(&area);
        first.blob_write("half", vec![7; 500]).await.unwrap();
        first.write("items", vec![create("first", &body)]).await.unwrap();
        first.commit(CommitAdditions::default()).await.unwrap();
        // The workspace is measured in the background, so this waits.
        let begun = std::time::Instant::now();
        let refused = loop {
            let mut more = unit(&area);
            let id = begun.elapsed().as_nanos().to_string();
            more.write("items", vec![create(&id, "{}")]).await.unwrap();
            match more.commit(CommitAdditions::default()).await {
                Err(error) => break error,
                Ok(()) => assert!(begun.elapsed().as_secs() < 10, "more bytes are kept"),
            }
        };
        assert!(matches!(refused, Error::OverQuota(_)), "{refused}");
        assert!(refused.to_string().contains("limits.max_stored_bytes_per_area"), "{refused}");

        let mut elsewhere = unit(&area.elsewhere());
        elsewhere.write("items", vec![create("first", &body)]).await.unwrap();
        elsewhere.commit(CommitAdditions::default()).await.unwrap();
        // With a used-up quota, existing data can be changed and deleted, which
        // frees space.
        let mut less = unit(&area);
        less.write("items", vec![replace("first", None, "{}")]).await.unwrap();
        less.commit(CommitAdditions::default()).await.unwrap();
        let measured = store.stored_by_area(area.workspace).await.unwrap();
        assert!((500..1_000).contains(&measured["test"]), "{measured:?}");
    }

    async fn blobs_are_bounded_in_bytes_and_read_in_pieces(store: &Store) {
        const PIECE: usize = 8 << 20;
        let area = Area::installed(store).await;
        area.commit(async |unit| unit.blob_write("large", vec![7; PIECE + 1]).await.unwrap()).await;
        let read = area.unit().blob_read("large", 0, u32::MAX).await.unwrap();
        assert_eq!(read.len(), PIECE);
        let mut unit = area.with(|spec| spec.limits.max_blob_bytes = 10);
        unit.blob_write("small", b"123456".to_vec()).await.unwrap();
        assert_eq!(unit.blob_read("small", 2, 99).await.unwrap(), b"3456");
        assert_eq!(refused(unit.blob_read("large", 0, 1).await), BlobError::LimitExceeded);
        let written = unit.blob_write("more", b"1".to_vec()).await;
        assert_eq!(refused(written), BlobError::LimitExceeded);
    }
}
