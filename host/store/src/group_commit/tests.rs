//! Tests of group commits.

use std::time::Duration;

use crate::apply::DocumentInsert;
use crate::idempotency::StoredReply;
use crate::testing::{self, TestStore, execute, fresh, rows};
use crate::{AccessibleCollection, Backend, Settings, Store, collections};
use assurance_core::domain::id::{JobId, UserId, WorkspaceId};
use assurance_core::domain::job::{
    EventDeliveryJobTemplate, JobRunEnd, JobRunEndKind, MERGED_EVENTS_KIND, NewJob,
    RequestedEventsDocumentField,
};
use assurance_core::domain::time::Timestamp;

use super::*;

mod postgres;

fn unit(workspace: WorkspaceId, id: &str) -> Effects {
    let mut effects = Effects::new(workspace, "notes", Timestamp(1));
    let (collection, body) = ("notes.note".to_owned(), "{}".to_owned());
    effects.inserts.push(DocumentInsert { collection, id: id.to_owned(), version: 1, body });
    effects
}

/// Returns a store with the collection of the units.
async fn with_collection() -> TestStore {
    let fresh = fresh(Backend::Sqlite).await.unwrap();
    let note =
        AccessibleCollection { full_name: "notes.note".into(), ..AccessibleCollection::default() };
    collections::ensure(&fresh.store, &[note]).await.unwrap();
    fresh
}

/// Commits units that all wait for the write lock at the same time.
async fn together(store: &Store, units: Vec<Effects>) -> Vec<Result<u64, Error>> {
    let turn = store.begin(TransactionAccess::WriteLocked).await.unwrap();
    let units = units.into_iter().map(|effects| {
        let store = store.clone();
        tokio::spawn(async move { store.commit_in_group(effects).await })
    });
    let units: Vec<_> = units.collect();
    while store.0.group_commit.queue.lock().waiting.len() < units.len() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    turn.commit().await.unwrap();
    let ends = futures::future::join_all(units).await;
    ends.into_iter().map(Result::unwrap).collect()
}

async fn ids(store: &Store) -> Vec<String> {
    let mut reader = store.reader().await.unwrap();
    let ids = rows::<(String,)>(&mut reader, "SELECT id FROM \"notes.note\" ORDER BY id").await;
    reader.release();
    ids.into_iter().map(|(id,)| id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_that_fails_takes_no_other_with_it() {
    let fresh = with_collection().await;
    let workspace = WorkspaceId::new();
    let lost = JobRunEnd {
        workspace,
        jobs: vec![JobId(uuid::Uuid::new_v4())],
        lease: uuid::Uuid::new_v4(),
        how: JobRunEndKind::Done { keep: false },
        progress: None,
    };
    let units = vec![
        unit(workspace, "a"),
        Effects { job_ends: vec![lost], ..unit(workspace, "b") },
        unit(workspace, "a"),
        unit(workspace, "c"),
    ];
    let ends = together(&fresh.store, units).await;
    assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 2, "{ends:?}");
    assert!(matches!(ends[1], Err(Error::LeaseLost)), "{ends:?}");
    let broken = ends.iter().filter_map(|end| end.as_ref().err()?.broken_constraint());
    assert_eq!(broken.collect::<Vec<_>>(), ["notes.note_pkey"]);
    assert_eq!(ids(&fresh.store).await, ["a", "c"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let fresh = with_collection().await;
    let store = &fresh.store;
    let mut writer = store.writer().await.unwrap();
    execute(&mut writer, "PRAGMA max_page_count = 1").await;
    writer.release();
    let workspace = WorkspaceId::new();
    let units = (0..300).map(|n| {
        let mut effects = unit(workspace, &format!("{n:03}"));
        effects.inserts[0].body = format!("{{\"text\": \"{}\"}}", "x".repeat(2_000));
        effects
    });
    let ends = together(store, units.collect()).await;
    let full = ends.iter().filter(|end| matches!(end, Err(Error::Full(_)))).count();
    let kept = ends.iter().filter(|end| end.is_ok()).count();
    assert!(full > 0 && full + kept == 300, "{full} full, {kept} kept");
    assert_eq!(ids(store).await.len(), kept);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_that_panics_takes_no_other_with_it() {
    let fresh = with_collection().await;
    let (store, workspace) = (&fresh.store, WorkspaceId::new());
    let mut panics = unit(workspace, "a");
    // The name of its table would be cut inside a character.
    panics.inserts[0].collection = format!("a{}", "é".repeat(40));
    let units = vec![unit(workspace, "b"), panics, unit(workspace, "c")];
    let ends = together(store, units).await;
    assert!(matches!(&ends[1], Err(error) if error.is_crash()), "{ends:?}");
    assert!(ends[0].is_ok() && ends[2].is_ok(), "a panic of another unit: {ends:?}");
    let later = store.commit_in_group(unit(workspace, "d"));
    let later = tokio::time::timeout(Duration::from_secs(5), later).await;
    later.expect("a task commits it").unwrap();
    assert_eq!(ids(store).await, ["b", "c", "d"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overdue_units_do_not_wait_one_by_one_for_another_process() {
    let fresh = with_collection().await;
    let settings = Settings { acquire_timeout_ms: 200, ..fresh.settings.clone() };
    let store = Store::open(&settings).await.unwrap();
    let mut writer = store.writer().await.unwrap();
    execute(&mut writer, "PRAGMA busy_timeout = 300").await;
    writer.release();
    let workspace = WorkspaceId::new();
    let other = fresh.store.begin(TransactionAccess::WriteLocked).await.unwrap();
    let begun = Instant::now();
    let units = (0..20).map(|n| store.commit_in_group(unit(workspace, &n.to_string())));
    for refused in futures::future::join_all(units).await {
        assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    }
    let unit = |n: i32| Unit::new(unit(workspace, &n.to_string()), oneshot::channel().0);
    let units = (0..20).map(unit);
    commit_each(&store, units.collect::<Vec<_>>()).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    other.commit().await.unwrap();
    assert!(ids(&fresh.store).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_store_refuses_units_at_once() {
    let fresh = with_collection().await;
    fresh.store.close().await;
    let refused = fresh.store.commit_in_group(unit(WorkspaceId::new(), "a"));
    let refused = tokio::time::timeout(Duration::from_secs(5), refused).await;
    assert!(matches!(refused, Ok(Err(Error::Unavailable(_)))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_has_gone_leaves_all_of_its_unit_or_nothing() {
    let fresh = with_collection().await;
    let (store, workspace) = (&fresh.store, WorkspaceId::new());
    let turn = store.begin(TransactionAccess::WriteLocked).await.unwrap();
    let gone = store.commit_in_group(unit(workspace, "gone"));
    assert!(tokio::time::timeout(Duration::from_millis(5), gone).await.is_err());
    turn.commit().await.unwrap();
    store.commit_in_group(unit(workspace, "stays")).await.unwrap();
    assert_eq!(ids(store).await, ["stays"]);
}

/// Returns a unit as a request makes it: with a document that requests an event, a response for the
/// idempotency key, a job of merged events, another job and two events.
fn request(workspace: WorkspaceId, n: u128) -> Effects {
    let mut effects = unit(workspace, &format!("{n}"));
    let named = if n.is_multiple_of(3) { "made" } else { "lost" };
    effects.inserts[0].body = format!("{{\"events\": [\"{named}\"]}}");
    effects.now = Timestamp(1 + n as i64 % 5);
    effects.reply = Some(StoredReply {
        workspace,
        user: UserId(uuid::Uuid::nil()),
        operation: "create".to_owned(),
        key: format!("{n}"),
        fingerprint: [0; 32],
        status: 201,
        body: None,
        version: None,
        expires_at: Timestamp(100),
    });
    let job = |id: u128, kind: &str| NewJob {
        workspace,
        kind: kind.to_owned(),
        resource: None,
        available_at: Timestamp(50),
        ..testing::job(id << 64 | n << 24)
    };
    effects.jobs = vec![job(1, "tidy"), job(2, MERGED_EVENTS_KIND)];
    let (collection, member) = ("notes.note".to_owned(), "events".to_owned());
    let requests = RequestedEventsDocumentField { collection, member };
    effects.deliveries = ["made", "lost"]
        .map(|event| EventDeliveryJobTemplate {
            job: job(event.len() as u128 + u128::from(event == "made"), "event"),
            event: event.to_owned(),
            requests: requests.clone(),
        })
        .to_vec();
    effects
}

type StoredRows = (Vec<(String,)>, Vec<(String, i64)>, Vec<(String, i64)>);

/// Returns the documents, responses and jobs. Which deliveries there are depends on the order of
/// the units.
async fn stored(store: &Store) -> StoredRows {
    let mut reader = store.reader().await.unwrap();
    let documents = "SELECT id || body || version FROM \"notes.note\" ORDER BY 1";
    let replies = "SELECT key, status FROM idempotency ORDER BY key";
    let jobs = "SELECT kind || payload, created_at FROM jobs WHERE kind = 'tidy' ORDER BY id";
    let found = (
        rows(&mut reader, documents).await,
        rows(&mut reader, replies).await,
        rows(&mut reader, jobs).await,
    );
    reader.release();
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn units_that_share_statements_store_what_each_stores_by_itself() {
    let (shared, alone) = (with_collection().await, with_collection().await);
    let workspaces = [WorkspaceId::new(), WorkspaceId::new()];
    let units = || (0..100_u128).map(|n| request(workspaces[n as usize % 2], n));
    let ends = together(&shared.store, units().collect()).await;
    assert!(ends.iter().all(Result::is_ok), "{ends:?}");
    for unit in units() {
        alone.store.commit_in_group(unit).await.unwrap();
    }
    assert_eq!(stored(&shared.store).await, stored(&alone.store).await);
    let count = async |store: &Store, kind: &str| {
        let mut reader = store.reader().await.unwrap();
        let sql = format!("SELECT count(*) FROM jobs WHERE kind = '{kind}'");
        let found = rows::<(i64,)>(&mut reader, &sql).await;
        reader.release();
        found[0].0
    };
    for fresh in [&shared, &alone] {
        assert_eq!(count(&fresh.store, MERGED_EVENTS_KIND).await, 2, "one for each workspace");
    }
    // One by one, a document receives the events of its own unit and of later ones: of 50 units,
    // 1,275. Of units that share statements, it receives all.
    assert_eq!(count(&alone.store, "event").await, 2 * 1_275);
    let deliveries = count(&shared.store, "event").await;
    assert!((2 * 1_275 + 1..=2 * 2_500).contains(&deliveries), "{deliveries}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_units_that_share_statements_only_those_with_a_fault_fail() {
    let fresh = with_collection().await;
    let workspace = WorkspaceId::new();
    let mut units: Vec<Effects> = (0..40).map(|n| request(workspace, n)).collect();
    // A key and a document that another unit has, too.
    units[7].reply = units[3].reply.clone();
    units[20].inserts[0].id = "21".to_owned();
    let ends = together(&fresh.store, units).await;
    let failed: Vec<usize> = (0..40).filter(|&n| ends[n].is_err()).collect();
    assert_eq!(failed.len(), 2, "{ends:?}");
    assert!(failed.iter().all(|n| [3, 7, 20, 21].contains(n)), "{ends:?}");
    assert!(ends[3].is_ok() || ends[7].is_ok(), "{ends:?}");
    let taken = ends.iter().filter(|end| matches!(end, Err(Error::KeyTaken)));
    assert_eq!(taken.count(), 1, "{ends:?}");
    let (documents, replies, jobs) = stored(&fresh.store).await;
    assert_eq!((documents.len(), replies.len(), jobs.len()), (38, 38, 38));
}
