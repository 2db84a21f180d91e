//! Tests of other effects of a commit: responses, jobs, events, secrets, blobs.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::*;
use crate::{
    BlobError, EgressResponseCache, EnqueueJobRequest, PublishOrEnqueueError, SecretError,
    SendSecretError,
};
use assurance_core::config::{Config, EgressConfig, MailConfig};
use assurance_core::domain::id::JobId;
use assurance_core::domain::job::{JobRunEnd, JobRunEndKind};
use assurance_outside::egress::{Egress, EgressError};
use assurance_outside::mail::{Mailer, Message};
use assurance_store::testing::{self, on_both};
use assurance_store::{Backend, TransactionAccess, blobs, idempotency};

type JobRow = (String, String, String, String, i64, i64, i64, Option<Uuid>);

/// Origin that the tests' secrets are sent to.
const HERE: &str = "https://a.example";

on_both! {
    async fn a_key_is_answered_once(store: &Store) {
        let area = Area::installed(store).await;
        let reply = area.reply("key-00001");
        let commit = async |id: &str, reply: &StoredReply| {
            let mut unit = area.unit();
            unit.write("items", vec![create(id, "{}")]).await.unwrap();
            unit.commit(CommitAdditions { reply: Some(reply.clone()), jobs: Vec::new() }).await
        };
        commit("a", &reply).await.unwrap();
        let find = async |now| {
            idempotency::find(store, area.workspace, area.user, "make_item", "key-00001", now).await.unwrap()
        };
        assert_eq!(find(NOW).await, Some(reply.clone()));
        assert!(matches!(commit("b", &reply).await, Err(Error::KeyTaken)));
        // The same request again returns a taken key, before any other
        // conflict.
        assert!(matches!(commit("a", &reply).await, Err(Error::KeyTaken)));
        assert_eq!(area.get("b").await, None);
        // After its expiry the key is free, and is swept.
        let later = NOW.plus_ms(1_000);
        assert_eq!(find(later).await, None);
        let mut unit = area.with(|spec| spec.call.now = later);
        unit.write("items", vec![create("b", "{}")]).await.unwrap();
        let renewed = StoredReply { expires_at: later.plus_ms(1), body: None, version: None, ..reply };
        unit.commit(CommitAdditions { reply: Some(renewed.clone()), jobs: Vec::new() }).await.unwrap();
        assert_eq!(find(later).await, Some(renewed));
        let mut writer = store.writer().await.unwrap();
        assert_eq!(idempotency::sweep(&mut writer, later, 10).await.unwrap(), 0);
        assert_eq!(idempotency::sweep(&mut writer, later.plus_ms(1), 10).await.unwrap(), 1);
    }

    async fn jobs_and_events_go_with_the_commit(store: &Store) {
        let area = Area::installed(store).await;
        let wish = |key: Option<&str>| EnqueueJobRequest {
            kind: "tidy".into(),
            payload: r#"{"n":1}"#.into(),
            resource: Some(Uuid::nil()),
            available_at: Some(NOW.plus_ms(7)),
            dedupe_key: key.map(str::to_owned),
        };
        let mut dropped = area.unit();
        dropped.enqueue(wish(None)).unwrap();
        drop(dropped);
        let mut unit = area.unit();
        unit.write("items", vec![create("a", "{}")]).await.unwrap();
        unit.enqueue(wish(Some("k"))).unwrap();
        unit.enqueue(wish(Some("k"))).unwrap();
        unit.enqueue(wish(None)).unwrap();
        let event = unit.publish("item.made", r#"{"id":"a"}"#.into()).unwrap();
        assert!(matches!(unit.publish("item.gone", "{}".into()), Err(PublishOrEnqueueError::Misuse(_))));
        assert!(matches!(unit.publish("item.made", "[]".into()), Err(PublishOrEnqueueError::Misuse(_))));
        unit.commit(CommitAdditions::default()).await.unwrap();
        let mut reader = store.reader().await.unwrap();
        let rows: Vec<JobRow> = testing::rows(&mut reader, "SELECT area, kind, lane, payload, max_attempts, timeout_ms, available_at, resource_id FROM jobs ORDER BY kind").await;
        assert_eq!(rows.len(), 3);
        let (payload, tidy) = (&rows[0].3, &rows[1]);
        assert_eq!((rows[0].0.as_str(), rows[0].1.as_str(), rows[0].2.as_str()), ("other", "event", "delivery"));
        let payload: serde_json::Value = serde_json::from_str(payload).unwrap();
        assert_eq!(payload, serde_json::json!({
            "id": event, "name": "item.made", "data": {"id": "a"},
            "occurred_at": NOW, "workspace_id": area.workspace,
        }));
        assert_eq!((tidy.4, tidy.5, tidy.6, tidy.7), (5, 1_000, NOW.plus_ms(7).0, Some(Uuid::nil())));
    }

    async fn an_event_is_delivered_only_if_a_document_of_the_workspace_requests_it(store: &Store) {
        let mut area = Area::installed(store).await;
        area.request_events("test.items", "events");
        let deliveries = async || {
            let mut reader = store.reader().await.unwrap();
            let sql = "SELECT workspace_id FROM jobs WHERE kind = 'event'";
            let rows: Vec<(Uuid,)> = testing::rows(&mut reader, sql).await;
            rows
        };
        let elsewhere = area.elsewhere();
        elsewhere.put(vec![create("a", r#"{"events":["item.made"]}"#)]).await.unwrap();
        area.put(vec![create("a", r#"{"events":["item.moved"]}"#)]).await.unwrap();
        area.put(vec![create("b", "{}")]).await.unwrap();
        area.publish_made(false).await;
        assert_eq!(deliveries().await, []);
        area.put(vec![create("c", r#"{"events":["item.lost","item.made"]}"#)]).await.unwrap();
        area.put(vec![create("d", r#"{"events":["item.made"]}"#)]).await.unwrap();
        area.put(vec![create("e", r#"{"events":["item.m\u0061de"]}"#)]).await.unwrap();
        for reads in [false, true] {
            area.publish_made(reads).await;
        }
        // Three documents request the event; a transaction delivers it once, for all of them.
        assert_eq!(deliveries().await, [(area.workspace.0,); 4]);
    }

    async fn every_document_that_requests_an_event_has_a_delivery_of_its_own(store: &Store) {
        let mut area = Area::installed(store).await;
        area.request_events("test.items", "events");
        let ids = ["0196f000-0000-7000-8000-00000000000a", "no \"uuid\" but as long as one, really", "\u{e9}"];
        let requests = r#"{"events":["item.made","item.made"]}"#;
        area.put(ids.map(|id| create(id, requests)).to_vec()).await.unwrap();
        area.publish_made(false).await;
        let mut reader = store.reader().await.unwrap();
        let sql = "SELECT id, payload, resource_id FROM jobs ORDER BY id";
        let jobs: Vec<(Uuid, String, Option<Uuid>)> = testing::rows(&mut reader, sql).await;
        let mut told = BTreeSet::new();
        for (nth, (id, payload, resource)) in (0..).zip(&jobs) {
            assert_eq!(id.as_u128() & 0xff_ffff, nth);
            let payload: serde_json::Value = serde_json::from_str(payload).unwrap();
            let by = payload["requested_by"].as_str().unwrap();
            assert_eq!(*resource, by.parse().ok());
            assert_eq!(payload["name"], "item.made");
            told.insert(by.to_owned());
        }
        assert_eq!(told, ids.map(str::to_owned).into());
        assert_eq!(jobs.len(), ids.len());
    }

    async fn merged_events_are_one_job_at_the_end_of_their_second(store: &Store) {
        let mut area = Area::installed(store).await;
        area.merge_events();
        let mut unit = area.unit();
        unit.publish("item.made", "{}".into()).unwrap();
        unit.publish("item.made", "{}".into()).unwrap();
        unit.commit(CommitAdditions::default()).await.unwrap();
        let mut reader = store.reader().await.unwrap();
        let sql = "SELECT area, kind, payload, available_at FROM jobs";
        let jobs: Vec<(String, String, String, i64)> = testing::rows(&mut reader, sql).await;
        let next = NOW.next_second().0;
        assert_eq!(jobs, [("other".into(), "events_merged".into(), "{}".into(), next)]);
    }

    async fn merged_events_of_several_calls_are_a_job_that_waits(store: &Store) {
        let mut area = Area::installed(store).await;
        area.merge_events();
        let elsewhere = area.elsewhere();
        let publish = async |area: &Area, seed: u8, now: Timestamp| {
            let mut unit = area.with(|spec| {
                (spec.call.seed, spec.call.now) = ([seed; 32], now);
            });
            unit.publish("item.made", "{}".into()).unwrap();
            unit.commit(CommitAdditions::default()).await.unwrap();
            let mut reader = store.reader().await.unwrap();
            let sql = "SELECT id FROM jobs WHERE status = 'queued'";
            testing::rows::<(Uuid,)>(&mut reader, sql).await.len()
        };
        publish(&area, 1, NOW).await;
        // PostgreSQL has one for each call; its run removes the others.
        let again = usize::from(store.backend() == Backend::Postgres);
        assert_eq!(publish(&area, 2, NOW).await, 1 + again);
        assert_eq!(publish(&elsewhere, 3, NOW).await, 2 + again);
        assert_eq!(publish(&area, 4, NOW.plus_ms(1_000)).await, 3 + again);
        let set = async |what: &str| {
            let mut writer = store.writer().await.unwrap();
            testing::execute(&mut writer, &format!("UPDATE jobs SET {what}")).await;
            writer.release();
        };
        // What runs may have read before the call's commit.
        set("status = 'running'").await;
        assert_eq!(publish(&area, 5, NOW).await, 1);
        // What has failed may be given up.
        set("attempts = 1").await;
        assert_eq!(publish(&area, 6, NOW).await, 2);
    }

    async fn a_request_that_is_committed_before_the_event_receives_it(store: &Store) {
        let mut area = Area::installed(store).await;
        area.request_events("test.items", "events");
        let mut unit = area.unit();
        unit.query(&by(&[])).await.unwrap();
        unit.publish("item.made", "{}".into()).unwrap();
        area.put(vec![create("a", r#"{"events":["item.made"]}"#)]).await.unwrap();
        let committed = unit.commit(CommitAdditions::default()).await;
        let mut reader = store.reader().await.unwrap();
        let sql = "SELECT count(*) FROM jobs WHERE kind = 'event'";
        let jobs: Vec<(i64,)> = testing::rows(&mut reader, sql).await;
        match committed {
            Ok(()) => assert_eq!(jobs, [(1,)]),
            Err(error) => assert!(error.is_write_conflict(), "{error}"),
        }
    }

    async fn a_dedupe_key_is_one_that_both_databases_can_keep(store: &Store) {
        let area = Area::installed(store).await;
        let wish = |key: String| EnqueueJobRequest {
            kind: "tidy".into(),
            payload: "{}".into(),
            dedupe_key: Some(key),
            ..EnqueueJobRequest::default()
        };
        let mut unit = area.unit();
        for bad in ["a\0".to_owned(), "x".repeat(201), "x".repeat(10_000)] {
            let told = unit.enqueue(wish(bad));
            assert!(matches!(told, Err(PublishOrEnqueueError::Misuse(_))), "{told:?}");
        }
        unit.enqueue(wish("\u{10FFFF}".repeat(200))).unwrap();
        unit.commit(CommitAdditions::default()).await.unwrap();
    }

    async fn a_lost_lease_keeps_nothing(store: &Store) {
        let area = Area::installed(store).await;
        let mut unit = area.unit();
        unit.write("items", vec![create("a", "{}")]).await.unwrap();
        let job = JobRunEnd {
            workspace: area.workspace,
            jobs: vec![JobId::new()],
            lease: Uuid::new_v4(),
            how: JobRunEndKind::Done { keep: true },
            progress: None,
        };
        let lost = unit.commit(CommitAdditions { reply: None, jobs: vec![job] }).await;
        assert!(matches!(lost, Err(Error::LeaseLost)), "{lost:?}");
        assert_eq!(area.get("a").await, None);
    }

    async fn a_secret_is_kept_sealed_and_bound(store: &Store) {
        let area = Area::installed(store).await;
        let mut unit = area.unit();
        unit.secret_put("hook/1", b"hush").await.unwrap();
        assert!(unit.secret_exists("hook/1").await.unwrap());
        assert_eq!(refused(unit.secret_put("a b", b"x").await), SecretError::InvalidName);
        assert_eq!(refused(unit.secret_put("a", b"").await), SecretError::LimitExceeded);
        unit.commit(CommitAdditions::default()).await.unwrap();
        let mut unit = area.unit();
        assert_eq!(unit.secret_bytes("hook/1").await.unwrap().as_slice(), b"hush");
        assert!(!area.elsewhere().unit().secret_exists("hook/1").await.unwrap());
        unit.secret_put("hook/1", b"other").await.unwrap();
        unit.commit(CommitAdditions::default()).await.unwrap();
        // The row cannot be decrypted at another location.
        let mut writer = store.writer().await.unwrap();
        testing::execute(&mut writer, "UPDATE secrets SET name = 'hook/2'").await;
        drop(writer);
        let moved = area.unit().secret_bytes("hook/2").await;
        assert!(matches!(moved, Err(HostCallError::Abort(Error::Seal(_)))), "{moved:?}");
        let mut unit = area.unit();
        unit.secret_delete("hook/2").await.unwrap();
        assert_eq!(refused(unit.secret_delete("hook/2").await), SecretError::NotFound);
        unit.commit(CommitAdditions::default()).await.unwrap();
        assert_eq!(refused(area.unit().secret_bytes("hook/2").await), SecretError::NotFound);
    }

    async fn a_secret_that_is_sent_leaves_no_transaction_open(store: &Store) {
        let area = Area::installed(store).await;
        let mut unit = area.unit();
        unit.secret_put("key", b"hush").await.unwrap();
        assert_eq!(unit.secret_to_send("key", HERE).await.unwrap().as_slice(), b"hush");
        unit.commit(CommitAdditions::default()).await.unwrap();
        let mut unit = area.unit();
        assert_eq!(unit.secret_to_send("key", HERE).await.unwrap().as_slice(), b"hush");
        assert_eq!(refused(unit.secret_to_send("none", HERE).await), SendSecretError::NotFound);
        // The call has no snapshot yet, so it sees concurrent writes.
        area.commit(async |unit| unit.secret_delete("key").await.unwrap()).await;
        assert!(!unit.secret_exists("key").await.unwrap());
    }

    async fn a_secret_is_sent_to_one_origin_only_by_the_component_that_stored_it(store: &Store) {
        let area = Area::installed(store).await;
        let scope = AreaPolicy { digest: "one".into(), ..AreaPolicy::clone(&area.scope) };
        let area = Area { scope: Arc::new(scope), ..area };
        area.commit(async |unit| unit.secret_put("key", b"hush").await.unwrap()).await;
        let scope = AreaPolicy { digest: "another".into(), ..AreaPolicy::clone(&area.scope) };
        let next = Area { scope: Arc::new(scope), ..area.clone() };
        let early = refused(next.unit().secret_to_send("key", HERE).await);
        assert_eq!(early, SendSecretError::OtherComponent);
        // The binding is kept although the step is rolled back.
        area.unit().secret_to_send("key", HERE).await.unwrap();
        let elsewhere = refused(area.unit().secret_to_send("key", "https://b.example").await);
        assert_eq!(elsewhere, SendSecretError::OtherOrigin(HERE.to_owned()));
        assert_eq!(next.unit().secret_to_send("key", HERE).await.unwrap().as_slice(), b"hush");
        assert_eq!(next.unit().secret_bytes("key").await.unwrap().as_slice(), b"hush");
        // Changing the origin in the database makes decryption fail.
        let mut writer = store.writer().await.unwrap();
        testing::execute(&mut writer, "UPDATE secrets SET origin = ''").await;
        writer.release();
        let freed = area.unit().secret_to_send("key", "https://b.example").await;
        assert!(matches!(freed, Err(HostCallError::Abort(Error::Seal(_)))), "{freed:?}");
        // A new value is not bound to an origin.
        next.commit(async |unit| unit.secret_put("key", b"new").await.unwrap()).await;
        next.unit().secret_to_send("key", "https://b.example").await.unwrap();
    }

    async fn a_secret_is_not_bound_by_a_step_that_could_undo_it(store: &Store) {
        let area = Area::installed(store).await;
        area.commit(async |unit| unit.secret_put("key", b"hush").await.unwrap()).await;
        let mut unit = area.with(|spec| spec.in_job = true);
        unit.write("items", vec![create("a", "{}")]).await.unwrap();
        unit.count("items", &[], None).await.unwrap();
        let late = refused(unit.secret_to_send("key", HERE).await);
        assert_eq!(late, SendSecretError::WrittenBefore);
    }

    async fn nothing_is_open_while_a_step_waits_for_others(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("a", "{}"), create("b", "{}")]).await.unwrap();
        let egress = Egress::new(EgressConfig::default()).unwrap();
        let sends = async |unit: &mut UnitOfWork| {
            // Refused before it is sent.
            let sent = unit.send(&egress, vec![request_to("http://example.com")]).await;
            assert!(matches!(sent.as_deref(), Ok([Err(EgressError::Refused(_))])), "{sent:?}");
        };
        // A transaction is open, then none, then another one.
        let mut unit = area.with(|spec| spec.in_job = true);
        unit.get("items", "a").await.unwrap();
        assert_eq!(unit.count("items", &[], None).await.unwrap(), 2);
        sends(&mut unit).await;
        assert!(matches!(unit.reading, crate::ReadTransactionState::NotYet));
        area.put(vec![create("c", "{}")]).await.unwrap();
        assert_eq!(unit.count("items", &[], None).await.unwrap(), 3);
        unit.write("items", vec![replace("b", None, "{}")]).await.unwrap();
        unit.commit(CommitAdditions::default()).await.unwrap();
        // Documents read by id before the request was sent must be unchanged at
        // the end.
        let mut unit = area.with(|spec| spec.in_job = true);
        unit.get("items", "a").await.unwrap();
        sends(&mut unit).await;
        area.put(vec![replace("a", None, "{}")]).await.unwrap();
        unit.count("items", &[], None).await.unwrap();
        unit.write("items", vec![replace("b", None, "{}")]).await.unwrap();
        let lost = unit.commit(CommitAdditions::default()).await;
        assert!(matches!(lost, Err(Error::RunAgain)), "{lost:?}");
        // Flushed, uncommitted writes keep the transaction open.
        let mut unit = area.with(|spec| spec.in_job = true);
        unit.write("items", vec![create("d", "{}")]).await.unwrap();
        unit.count("items", &[], None).await.unwrap();
        sends(&mut unit).await;
        assert_eq!(area.get("d").await, None);
        unit.commit(CommitAdditions::default()).await.unwrap();
        assert!(area.get("d").await.is_some());
    }

    async fn a_mail_after_one_that_a_limit_refused_is_sent_once(store: &Store) {
        let area = Area::installed(store).await;
        let data_dir = std::env::temp_dir().join(format!("mail-{}", area.workspace));
        let mail = MailConfig {
            max_per_recipient_per_day: 1,
            max_per_workspace_per_day: 9,
            recipient_pause_seconds: 0,
            ..MailConfig::default()
        };
        let config = Config { data_dir, mail, ..Config::default() };
        let mailer = Mailer::new(&config).unwrap();
        let attempt = async |sent: &Arc<EgressResponseCache>, names: &[&str]| {
            let mut unit = area.with(|spec| spec.in_job = true).with_egress_log(sent);
            let mut accepted = Vec::new();
            for name in names {
                let to = format!("{name}-{}@example.org", area.workspace);
                let message = Message { to, subject: "Hello".into(), text: "Hello.".into() };
                accepted.push(unit.send_mail(&mailer, message).await.is_ok());
            }
            (accepted, unit.random_bytes(8))
        };
        assert_eq!(attempt(&Arc::default(), &["ada"]).await.0, [true]);
        // The second attempt of the step runs after a write conflict.
        let sent = Arc::default();
        let first = attempt(&sent, &["ada", "bob"]).await;
        assert_eq!(first.0, [false, true]);
        assert_eq!(attempt(&sent, &["ada", "bob"]).await, first);
        assert_eq!(std::fs::read_dir(config.data_dir.join("mail")).unwrap().count(), 2);
        std::fs::remove_dir_all(&config.data_dir).unwrap();
    }

    async fn a_blob_is_seen_with_the_commit_and_swept_without_its_row(store: &Store) {
        let area = Area::installed(store).await;
        let mut dropped = area.unit();
        dropped.blob_write("x", b"never".to_vec()).await.unwrap();
        drop(dropped);
        let mut unit = area.unit();
        let stat = unit.blob_write("dir/x", b"0123456789".to_vec()).await.unwrap();
        assert_eq!(stat.sha256, "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882");
        assert_eq!(area.unit().blob_stat("dir/x").await.unwrap(), None);
        let mut upload = store.blobs().upload(area.workspace, "test");
        upload.write(b"strea".as_slice().into()).await.unwrap();
        upload.write(b"med".as_slice().into()).await.unwrap();
        unit.blob_attach("streamed", upload.finish().await.unwrap()).unwrap();
        unit.commit(CommitAdditions::default()).await.unwrap();

        let mut unit = area.unit();
        assert_eq!(unit.blob_read("dir/x", 3, 4).await.unwrap(), b"3456");
        assert_eq!(unit.blob_read("dir/x", 8, 40).await.unwrap(), b"89");
        assert_eq!(unit.blob_read("dir/x", 10, 1).await.unwrap(), b"");
        assert_eq!(unit.blob_read("streamed", 0, 99).await.unwrap(), b"streamed");
        assert_eq!(refused(unit.blob_read("y", 0, 1).await), BlobError::NotFound);
        assert_eq!(refused(unit.blob_stat("../é").await), BlobError::InvalidName);
        unit.blob_delete("streamed").await.unwrap();
        unit.commit(CommitAdditions::default()).await.unwrap();
        assert_eq!(blobs::sweep(store, Timestamp(0)).await.unwrap(), 0);
        assert_eq!(blobs::sweep(store, Timestamp(i64::MAX)).await.unwrap(), 2);
        assert_eq!(area.unit().blob_read("dir/x", 0, 3).await.unwrap(), b"012");
    }

    async fn content_is_discarded_unless_a_row_refers_to_it(store: &Store) {
        let area = Area::installed(store).await;
        let mut unit = area.unit();
        let stored = unit.blob_write("x", b"0".to_vec()).await.unwrap();
        unit.commit(CommitAdditions::default()).await.unwrap();
        let refused = area.unit().blob_write("x", b"1".to_vec()).await.unwrap();
        for (blob, discarded) in [(&stored, 0), (&refused, 1), (&refused, 0)] {
            assert_eq!(blobs::discard(store, &blob.object).await.unwrap(), discarded);
        }
        assert_eq!(area.unit().blob_read("x", 0, 9).await.unwrap(), b"0");
    }

    async fn a_route_that_reads_once_opens_no_transaction(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("a", "{}"), create("b", "{}")]).await.unwrap();
        let isolation_profile = route();
        let reader = || area.with(|spec| { spec.writes = false; spec.isolation_profile.clone_from(&isolation_profile); });
        let mut first = reader();
        assert!(first.get("items", "a").await.unwrap().is_some());
        let ended = first.get("items", "b").await;
        assert!(matches!(ended, Err(HostCallError::Abort(Error::RunAgain))), "{ended:?}");
        // The next run reads both from one snapshot, and so does every later
        // call.
        let mut second = reader();
        second.get("items", "a").await.unwrap();
        area.put(vec![delete("b")]).await.unwrap();
        assert!(second.get("items", "b").await.unwrap().is_some());
        second.commit(CommitAdditions::default()).await.unwrap();
    }

    async fn the_same_call_has_the_same_chances(store: &Store) {
        let area = Area::installed(store).await;
        let draw = || {
            let mut unit = area.unit();
            (unit.random_bytes(40), unit.publish("item.made", "{}".into()).unwrap())
        };
        assert_eq!(draw(), draw());
        let other = area.with(|spec| spec.call.seed = [8; 32]).random_bytes(40);
        assert_ne!(draw().0, other);
    }

    async fn members_are_those_of_the_workspace(store: &Store) {
        let area = Area::installed(store).await;
        assert_eq!(area.unit().member(area.user).await.unwrap(), None);
        assert_eq!(area.unit().members().await.unwrap(), []);
        assert!(matches!(area.unit().workspace().await, Err(Error::WorkspaceGone)));
        let tx = store.begin(TransactionAccess::WriteLocked).await.unwrap();
        tx.commit().await.unwrap();
    }
}
