//! Tests of concurrent calls: no write is lost, and a conflicting call gets the
//! reason.

use super::*;
use crate::DocumentError;
use assurance_store::testing::on_both;

on_both! {
    async fn the_later_of_two_changes_runs_again(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("a", r#"{"rank":1}"#)]).await.unwrap();
        let (mut one, mut two) = (area.unit(), area.unit());
        one.get("items", "a").await.unwrap();
        two.get("items", "a").await.unwrap();
        one.write("items", vec![replace("a", None, r#"{"rank":2}"#)]).await.unwrap();
        two.write("items", vec![replace("a", None, r#"{"rank":3}"#)]).await.unwrap();
        one.commit(CommitAdditions::default()).await.unwrap();
        let lost = two.commit(CommitAdditions::default()).await;
        assert!(matches!(lost, Err(Error::RunAgain)), "{lost:?}");
        assert_eq!(area.get("a").await.unwrap().version, 2);
    }

    async fn write_skew_is_refused(store: &Store) {
        // Write skew: two doctors are on call, and each may leave only if the
        // other stays.
        let area = Area::installed(store).await;
        area.put(vec![create("a", r#"{"done":false}"#), create("b", r#"{"done":false}"#)]).await.unwrap();
        let on_call = [is("done", FieldTest::Equals(FieldValue::Boolean(false)))];
        let (mut one, mut two) = (area.unit(), area.unit());
        assert_eq!(one.count("items", &on_call, None).await.unwrap(), 2);
        assert_eq!(two.count("items", &on_call, None).await.unwrap(), 2);
        one.write("items", vec![replace("a", None, r#"{"done":true}"#)]).await.unwrap();
        two.write("items", vec![replace("b", None, r#"{"done":true}"#)]).await.unwrap();
        let ends = (one.commit(CommitAdditions::default()).await, two.commit(CommitAdditions::default()).await);
        assert!(
            matches!(ends, (Ok(()), Err(Error::RunAgain)) | (Err(Error::RunAgain), Ok(()))),
            "{ends:?}"
        );
        assert_eq!(area.unit().count("items", &on_call, None).await.unwrap(), 1);
    }

    async fn a_phantom_is_refused(store: &Store) {
        let area = Area::installed(store).await;
        let (mut one, mut two) = (area.unit(), area.unit());
        assert_eq!(one.count("items", &[], None).await.unwrap(), 0);
        assert_eq!(two.count("items", &[], None).await.unwrap(), 0);
        one.write("items", vec![create("a", "{}")]).await.unwrap();
        two.write("items", vec![create("b", "{}")]).await.unwrap();
        one.commit(CommitAdditions::default()).await.unwrap();
        let lost = two.commit(CommitAdditions::default()).await;
        assert!(matches!(lost, Err(Error::RunAgain)), "{lost:?}");
    }

    async fn what_was_read_by_id_is_checked_when_the_rest_is_written(store: &Store) {
        let area = Area::installed(store).await;
        let isolation_profile = route();
        let light = || area.with(|spec| spec.isolation_profile.clone_from(&isolation_profile));
        isolation_profile.as_ref().unwrap().note_second_read();
        area.put(vec![create("a", "{}"), create("b", "{}"), create("c", "{}")]).await.unwrap();
        // Runs two calls with these reads and then these writes; the second one
        // must conflict.
        let loses = async |reads: [&str; 2], first: DocumentWrite, then: DocumentWrite| {
            let (mut one, mut two) = (light(), light());
            for id in reads {
                one.get("items", id).await.unwrap();
                two.get("items", id).await.unwrap();
            }
            one.write("items", vec![first]).await.unwrap();
            two.write("items", vec![then]).await.unwrap();
            assert!(matches!(one.reading, crate::ReadTransactionState::Snapshot(_)));
            one.commit(CommitAdditions::default()).await.unwrap();
            let lost = two.commit(CommitAdditions::default()).await;
            assert!(matches!(lost, Err(Error::RunAgain | Error::AlreadyExists)), "{lost:?}");
        };
        // Lost update, write skew, a deleted document, a newly created
        // document.
        loses(["a", "b"], replace("a", None, "{}"), replace("a", None, "{}")).await;
        loses(["a", "b"], replace("a", None, "{}"), replace("b", None, "{}")).await;
        loses(["a", "c"], delete("c"), replace("a", None, "{}")).await;
        loses(["d", "e"], create("d", "{}"), create("e", "{}")).await;
        loses(["f", "a"], create("f", "{}"), create("f", "{}")).await;
        // A created document must not compensate for a deleted one in the row
        // count.
        let mut two = light();
        for id in ["a", "g"] {
            two.get("items", id).await.unwrap();
        }
        two.write("items", vec![create("h", "{}")]).await.unwrap();
        area.put(vec![delete("a"), create("g", "{}")]).await.unwrap();
        let lost = two.commit(CommitAdditions::default()).await;
        assert!(matches!(lost, Err(Error::RunAgain)), "{lost:?}");
        // A call that read other documents does not conflict.
        let (mut one, mut two) = (light(), light());
        one.get("items", "b").await.unwrap();
        two.get("items", "d").await.unwrap();
        one.write("items", vec![replace("b", None, "{}")]).await.unwrap();
        two.write("items", vec![replace("d", None, "{}")]).await.unwrap();
        one.commit(CommitAdditions::default()).await.unwrap();
        two.commit(CommitAdditions::default()).await.unwrap();
    }

    async fn blobs_are_checked_and_do_not_conflict_with_other_writes(store: &Store) {
        let area = Area::installed(store).await;
        let isolation_profile = route();
        isolation_profile.as_ref().unwrap().note_second_read();
        let light = || area.with(|spec| spec.isolation_profile.clone_from(&isolation_profile));
        let put = async |name: &str| {
            area.commit(async |unit| unit.blob_write(name, b"1".to_vec()).await.unwrap()).await;
        };
        put("x").await;
        // As long as it computes, others may write, and nobody waits for it.
        let mut slow = light();
        slow.get("items", "a").await.unwrap();
        let read = slow.blob_read("x", 0, 9).await;
        if store.backend() == assurance_store::Backend::Sqlite {
            assert_eq!(read.unwrap(), b"1");
            area.put(vec![create("b", "{}")]).await.unwrap();
            slow.write("items", vec![create("a", "{}")]).await.unwrap();
            slow.commit(CommitAdditions::default()).await.unwrap();
        } else {
            // PostgreSQL isolates blobs in a transaction, from the next call on.
            assert!(matches!(read, Err(HostCallError::Abort(Error::RunAgain))), "{read:?}");
        }
        // Of two calls that replace what they read, one runs again.
        for name in ["x", "new"] {
            let (mut one, mut two) = (light(), light());
            one.blob_stat(name).await.unwrap();
            two.blob_stat(name).await.unwrap();
            one.blob_write(name, b"2".to_vec()).await.unwrap();
            two.blob_write(name, b"3".to_vec()).await.unwrap();
            one.commit(CommitAdditions::default()).await.unwrap();
            let lost = two.commit(CommitAdditions::default()).await;
            assert!(matches!(lost, Err(Error::RunAgain)), "{name}: {lost:?}");
        }
    }

    async fn a_route_that_asks_has_a_transaction_from_then_on(store: &Store) {
        let area = Area::installed(store).await;
        let isolation_profile = route();
        let unit = || area.with(|spec| spec.isolation_profile.clone_from(&isolation_profile));
        let mut first = unit();
        first.get("items", "a").await.unwrap();
        let ended = first.count("items", &[], None).await;
        assert!(matches!(ended, Err(HostCallError::Abort(Error::RunAgain))), "{ended:?}");
        let mut second = unit();
        second.get("items", "a").await.unwrap();
        assert_eq!(second.count("items", &[], None).await.unwrap(), 0);
        second.write("items", vec![create("a", "{}")]).await.unwrap();
        assert_eq!(second.count("items", &[], None).await.unwrap(), 1);
        second.commit(CommitAdditions::default()).await.unwrap();
        assert!(area.get("a").await.is_some());
    }

    async fn a_document_that_exists_is_told_to_the_careful(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("a", "{}")]).await.unwrap();
        let lost = area.put(vec![create("a", "{}")]).await;
        assert!(matches!(lost, Err(Error::AlreadyExists)), "{lost:?}");
        let mut again = area.with(|spec| spec.locked = true);
        let told = again.write("items", vec![create("a", "{}")]).await;
        assert_eq!(refused(told), DocumentError::AlreadyExists);
        let mut unit = area.unit();
        let ended = unit.write("items", vec![create("a", "{}"), delete("a")]).await;
        assert_eq!(refused(ended), DocumentError::AlreadyExists);
    }

    async fn a_unique_conflict_names_its_fields(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("a", r#"{"email":"x"}"#)]).await.unwrap();
        area.put(vec![create("b", r#"{"email":null}"#), create("c", "{}")]).await.unwrap();
        let names = |lost: Result<Vec<u64>, Error>| match lost {
            Err(Error::UniqueConflict { collection, fields }) => {
                assert_eq!((collection.as_str(), fields), ("test.items", vec!["email".to_owned()]));
            }
            other => panic!("{other:?}"),
        };
        names(area.put(vec![create("d", r#"{"email":"x"}"#)]).await);
        names(area.put(vec![replace("b", None, r#"{"email":"x"}"#)]).await);
        // Another workspace has its own unique index, and a deletion frees the
        // value for a creation.
        area.elsewhere().put(vec![create("a", r#"{"email":"x"}"#)]).await.unwrap();
        let swap = vec![create("e", r#"{"email":"x"}"#), replace("a", None, "{}")];
        area.put(swap).await.unwrap();
        area.put(vec![create("f", r#"{"email":"x"}"#), delete("e")]).await.unwrap();
    }

    async fn a_unique_conflict_in_a_flush_ends_the_call(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("a", r#"{"email":"x"}"#)]).await.unwrap();
        let mut unit = area.unit();
        unit.write("items", vec![create("b", r#"{"email":"x"}"#)]).await.unwrap();
        let ended = unit.query(&by(&[])).await;
        assert!(matches!(ended, Err(HostCallError::Abort(Error::UniqueConflict { .. }))), "{ended:?}");
        assert!(unit.commit(CommitAdditions::default()).await.is_err());
        assert_eq!(area.get("b").await, None);
    }

    async fn a_unique_conflict_is_told_to_the_careful(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("a", r#"{"email":"x"}"#)]).await.unwrap();
        let mut unit = area.with(|spec| spec.locked = true);
        unit.write("items", vec![create("b", r#"{"email":"y"}"#)]).await.unwrap();
        let twice = vec![replace("b", None, "{}"), create("c", r#"{"email":"x"}"#)];
        let told = unit.write("items", twice).await;
        assert_eq!(refused(told), DocumentError::UniqueConflict(vec!["email".into()]));
        assert_eq!(unit.get("items", "c").await.unwrap(), None);
        assert_eq!(unit.get("items", "b").await.unwrap().unwrap().version, 1);
        unit.write("items", vec![delete("a"), create("c", r#"{"email":"x"}"#)]).await.unwrap();
        assert_eq!(unit.count("items", &[], None).await.unwrap(), 2);
        unit.commit(CommitAdditions::default()).await.unwrap();
        assert_eq!(area.ids(vec![]).await, ["c", "b"]);
    }

    async fn calls_that_hold_the_lock_do_not_lose(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("n", r#"{"rank":0}"#)]).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..24 {
            let area = area.clone();
            tasks.spawn(async move {
                assert!(try_increment(&area, true).await, "a call that held the lock lost");
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        let end = area.get("n").await.unwrap();
        assert_eq!(end.version, 25);
    }

    async fn no_increment_is_lost_among_optimists_and_the_locked(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("n", r#"{"rank":0}"#)]).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..16 {
            let area = area.clone();
            tasks.spawn(async move {
                for _ in 0..5 {
                    let mut losses = 0;
                    while !try_increment(&area, losses >= 2).await {
                        losses += 1;
                        assert!(losses < 6, "a locked call lost {losses} times");
                    }
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        let end = area.get("n").await.unwrap();
        assert_eq!(end.body.replace(' ', ""), r#"{"rank":80}"#);
    }
}

/// Increments a counter; returns false after a write conflict.
async fn try_increment(area: &Area, locked: bool) -> bool {
    let mut unit = area.with(|spec| spec.locked = locked);
    let read = match unit.get("items", "n").await {
        Err(HostCallError::Abort(Error::RunAgain)) => return false,
        read => read.unwrap().unwrap(),
    };
    let body: serde_json::Value = serde_json::from_str(&read.body).unwrap();
    let body = format!(r#"{{"rank":{}}}"#, body["rank"].as_i64().unwrap() + 1);
    unit.write("items", vec![replace("n", Some(read.version), &body)]).await.unwrap();
    match unit.commit(CommitAdditions::default()).await {
        Err(Error::RunAgain) => false,
        end => end.map(|()| true).unwrap(),
    }
}
