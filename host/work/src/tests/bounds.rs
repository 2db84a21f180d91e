//! Tests of the limits on what the host holds for one call.

use std::time::{Duration, Instant};

use super::*;
use crate::{
    BlobError, DocumentError, EgressResponseCache, EnqueueJobRequest, PublishOrEnqueueError,
    ReadLog,
};
use assurance_core::config::EgressConfig;
use assurance_outside::egress::Egress;
use assurance_store::Quota;
use assurance_store::testing::on_both;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Returns a document of this number of bytes.
fn document(bytes: usize) -> String {
    format!(r#"{{"x":"{}"}}"#, "y".repeat(bytes - 8))
}

/// Returns the origin of a server that answers each request with `bytes` bytes.
async fn server(bytes: usize) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4_096]).await;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
                let _ = stream.write_all(&[head.as_bytes(), &vec![7; bytes]].concat()).await;
            });
        }
    });
    origin
}

/// Repeats a call until its commit is refused, and returns the error. Jobs and
/// bytes are counted in the background, so some calls are still accepted.
async fn refused_in_the_end(call: impl AsyncFn() -> Result<(), Error>) -> Error {
    let begun = Instant::now();
    while begun.elapsed().as_secs() < 10 {
        if let Err(error) = call().await {
            return error;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("every call is accepted");
}

async fn add_document(mut unit: UnitOfWork) -> Result<(), Error> {
    let id = uuid::Uuid::new_v4().to_string();
    unit.write("items", vec![create(&id, "{}")]).await.unwrap();
    unit.commit(CommitAdditions::default()).await
}

on_both! {
    async fn what_goes_out_is_bounded_in_bytes(store: &Store) {
        let area = Area::installed(store).await;
        let wish = |bytes: usize| EnqueueJobRequest {
            kind: "tidy".into(),
            payload: format!(r#"{{"x":"{}"}}"#, "y".repeat(bytes - 8)),
            ..EnqueueJobRequest::default()
        };
        let unit = || area.with(|spec| {
            spec.limits.max_payload_bytes = 1_000;
            spec.limits.max_outgoing_bytes = 2_500;
        });
        let exceeded = |told: Result<(), PublishOrEnqueueError>| {
            assert!(matches!(told, Err(PublishOrEnqueueError::LimitExceeded)), "{told:?}");
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
        let wish = || EnqueueJobRequest {
            kind: "tidy".into(),
            payload: "{}".into(),
            ..EnqueueJobRequest::default()
        };
        let unit = |area: &Area| area.with(|spec| spec.limits.max_waiting_jobs = 3);
        let mut first = unit(&area);
        for _ in 0..3 {
            first.enqueue(wish()).unwrap();
        }
        first.commit(CommitAdditions::default()).await.unwrap();
        let refused = refused_in_the_end(async || {
            let mut more = unit(&area);
            more.enqueue(wish()).unwrap();
            more.commit(CommitAdditions::default()).await
        });
        let refused = refused.await;
        assert!(matches!(refused, Error::QueueFull(_)), "{refused:?}");
        let mut job = area.with(|spec| {
            spec.limits.max_waiting_jobs = 3;
            spec.in_job = true;
        });
        let told = job.enqueue(wish());
        assert!(matches!(told, Err(PublishOrEnqueueError::LimitExceeded)), "{told:?}");
        // Calls that enqueue nothing, and other workspaces, go on.
        let mut other = unit(&area);
        other.write("items", vec![create("1", r#"{"name":"a"}"#)]).await.unwrap();
        other.commit(CommitAdditions::default()).await.unwrap();
        let mut elsewhere = unit(&area.elsewhere());
        elsewhere.enqueue(wish()).unwrap();
        elsewhere.commit(CommitAdditions::default()).await.unwrap();
    }

    async fn requested_events_count_in_addition_to_the_jobs_of_their_call(store: &Store) {
        let mut area = Area::installed(store).await;
        area.request_events("test.items", "events");
        let subscribers = Arc::make_mut(&mut area.scope).events.values_mut().flatten();
        subscribers.for_each(|subscriber| subscriber.area = "test".into());
        area.put(vec![create("a", r#"{"events":["item.made"]}"#)]).await.unwrap();
        let mut unit = area.with(|spec| spec.limits.max_waiting_jobs = 3);
        for _ in 0..3 {
            let (kind, payload) = ("tidy".into(), "{}".into());
            unit.enqueue(EnqueueJobRequest { kind, payload, ..EnqueueJobRequest::default() }).unwrap();
        }
        unit.publish("item.made", "{}".into()).unwrap();
        unit.commit(CommitAdditions::default()).await.unwrap();
        // The queue is counted in the background, so this waits.
        let begun = Instant::now();
        while !store.has_full_queue(area.workspace, "test", 3) {
            assert!(begun.elapsed().as_secs() < 10, "the queue is not counted");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn a_full_queue_refuses_an_event_only_if_a_document_requests_it(store: &Store) {
        let mut area = Area::installed(store).await;
        area.request_events("test.items", "events");
        let subscribers = Arc::make_mut(&mut area.scope).events.values_mut().flatten();
        subscribers.for_each(|subscriber| subscriber.area = "test".into());
        area.put(vec![create("a", r#"{"events":["item.made"]}"#)]).await.unwrap();
        let unit = || area.with(|spec| spec.limits.max_waiting_jobs = 3);
        let mut first = unit();
        for _ in 0..3 {
            let (kind, payload) = ("tidy".into(), "{}".into());
            first.enqueue(EnqueueJobRequest { kind, payload, ..EnqueueJobRequest::default() }).unwrap();
        }
        first.commit(CommitAdditions::default()).await.unwrap();
        let publish = async |reads: bool| {
            let mut unit = unit();
            if reads {
                unit.query(&by(&[])).await.unwrap();
            }
            unit.publish("item.made", "{}".into()).unwrap();
            unit.commit(CommitAdditions::default()).await
        };
        for reads in [false, true] {
            let refused = refused_in_the_end(async || publish(reads).await).await;
            assert!(matches!(refused, Error::QueueFull(_)), "{refused:?}");
        }
        area.put(vec![replace("a", None, r#"{"events":["item.lost"]}"#)]).await.unwrap();
        for reads in [false, true] {
            publish(reads).await.unwrap();
        }
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
        let refused = refused_in_the_end(async || add_document(unit(&area)).await).await;
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

    async fn stored_responses_count_for_the_quota_of_the_workspace(store: &Store) {
        let area = Area::installed(store).await;
        let unit = || area.with(|spec| spec.limits.quota.workspace = 1_000);
        let reply = StoredReply { body: Some("x".repeat(1_000)), ..area.reply("k-12345678") };
        let end = CommitAdditions { reply: Some(reply), ..CommitAdditions::default() };
        unit().commit(end).await.unwrap();
        let measured = store.stored_by_area(area.workspace).await.unwrap();
        assert_eq!(measured.values().sum::<u64>(), 1_000, "{measured:?}");
        let refused = refused_in_the_end(async || add_document(unit()).await).await;
        assert!(refused.to_string().contains("max_stored_bytes_per_workspace"), "{refused}");
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

    async fn documents_that_one_read_returns_are_bounded(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("a", &document(1_000))]).await.unwrap();
        let unit = |writes: bool| area.with(|spec| {
            spec.writes = writes;
            spec.limits.max_documents = 5;
            spec.limits.max_bytes = 2_500;
        });
        let ids = |id: &str, count: usize| vec![id.to_owned(); count];
        for writes in [false, true] {
            let many = unit(writes).get_many("items", &ids("none", 6)).await;
            assert_eq!(refused(many), DocumentError::LimitExceeded);
            let mut unit = unit(writes);
            assert_eq!(unit.get_many("items", &ids("a", 2)).await.unwrap().len(), 2);
            let large = unit.get_many("items", &ids("a", 3)).await;
            assert_eq!(refused(large), DocumentError::LimitExceeded);
        }
        let mut unit = unit(true);
        unit.write("items", vec![create("new", &document(1_000))]).await.unwrap();
        let large = unit.get_many("items", &ids("new", 3)).await;
        assert_eq!(refused(large), DocumentError::LimitExceeded);
    }

    async fn groups_of_a_count_are_bounded_in_bytes(store: &Store) {
        let area = Area::installed(store).await;
        let named = |id: &str| create(id, &format!(r#"{{"name":"{}"}}"#, id.repeat(1_000)));
        area.put(["a", "b", "c"].map(named).into()).await.unwrap();
        let by_name = ["name".to_owned()];
        let unit = |bytes: u64| area.with(|spec| spec.limits.max_bytes = bytes);
        let groups = unit(3_000).count_by("items", &[], &by_name).await.unwrap();
        assert_eq!(groups.len(), 3);
        let large = unit(2_999).count_by("items", &[], &by_name).await;
        assert_eq!(refused(large), DocumentError::LimitExceeded);
    }

    async fn ids_without_a_document_are_counted(store: &Store) {
        let area = Area::installed(store).await;
        let mut unit = area.with(|spec| spec.limits.max_bytes = 10_000);
        let ids = |first: u32| (first..first + 10).map(|n| n.to_string()).collect::<Vec<_>>();
        // The call remembers which ids have no document.
        for _ in 0..10 {
            assert_eq!(unit.get_many("items", &ids(0)).await.unwrap(), []);
        }
        for first in [10, 20] {
            assert_eq!(unit.get_many("items", &ids(first)).await.unwrap(), []);
        }
        assert_eq!(refused(unit.get_many("items", &ids(30)).await), DocumentError::LimitExceeded);
    }

    async fn written_documents_are_counted_before_they_are_parsed(store: &Store) {
        let area = Area::installed(store).await;
        let mut unit = area.with(|spec| spec.limits.max_bytes = 2_500);
        let invalid = "y".repeat(3_000);
        let told = unit.write("items", vec![create("a", &invalid)]).await;
        assert_eq!(refused(told), DocumentError::LimitExceeded);
        let told = area.unit().write("items", vec![create("a", &document((16 << 20) + 1))]).await;
        let DocumentError::Misuse(what) = refused(told) else { panic!("taken") };
        assert!(what.contains("at most 16777216 bytes"), "{what}");
        area.unit().write("items", vec![create("a", &document(16 << 20))]).await.unwrap();
    }

    async fn texts_of_conditions_are_bounded(store: &Store) {
        let area = Area::installed(store).await;
        let equals = |bytes: usize| {
            let fields = vec!["name".to_owned(), "email".to_owned()];
            vec![QueryCondition { fields, test: FieldTest::Equals(text(&"x".repeat(bytes))) }]
        };
        let (fits, large) = (equals(1 << 20), equals((1 << 20) + 1));
        let mut unit = area.unit();
        assert_eq!(unit.count("items", &fits, None).await.unwrap(), 0);
        let misuse = |error| matches!(error, DocumentError::Misuse(_));
        assert!(misuse(refused(unit.count("items", &large, None).await)));
        let groups = unit.count_by("items", &large, &["rank".to_owned()]).await;
        assert!(misuse(refused(groups)));
        let page = unit.query(&Query { conditions: large, ..by(&[]) }).await;
        assert!(misuse(refused(page)));
    }

    async fn a_refused_event_is_no_effect(store: &Store) {
        let area = Area::installed(store).await;
        let log = Arc::new(ReadLog::default());
        let unit = area.with(|spec| spec.limits.max_outgoing_bytes = 900);
        let mut unit = unit.with_read_log(&log);
        let told = unit.publish("item.made", document(1_000));
        assert!(matches!(told, Err(PublishOrEnqueueError::LimitExceeded)), "{told:?}");
        assert_eq!(log.effects()["events"], serde_json::json!({}));
    }

    async fn responses_to_many_requests_are_bounded_together(store: &Store) {
        let area = Area::installed(store).await;
        let settings = EgressConfig { allow_loopback: true, ..EgressConfig::default() };
        let (egress, url) = (Egress::new(settings).unwrap(), server(1_000).await);
        let unit = area.with(|spec| {
            spec.in_job = true;
            spec.limits.max_incoming_bytes = 40_000;
        });
        let mut unit = unit.with_egress_log(&Arc::<EgressResponseCache>::default());
        let answers = unit.send(&egress, vec![request_to(&url); 64]).await.unwrap();
        let received = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(answers.len(), 64);
        assert!((16..=40).contains(&received), "{received} responses of 1,000 bytes");
    }
}
