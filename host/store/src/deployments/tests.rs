//! Versions and pointers, on both databases.

use super::*;
use crate::testing::{deployment as version, on_both};
use crate::{Store, TransactionAccess};

/// Stores staged versions with these digests.
async fn put(store: &Store, digests: &[&str]) {
    let mut connection = store.writer().await.unwrap();
    for digest in digests {
        insert(&mut connection, &version(digest), "{}").await.unwrap();
    }
}

async fn go(store: &Store, digest: Option<&str>, left: VersionStage, at: i64) -> Result<(), Error> {
    let mut tx = store.begin(TransactionAccess::WriteLocked).await?;
    let revision = pointer_of(&mut tx, "notes").await?.map_or(0, |pointer| pointer.revision);
    let at = Timestamp(at);
    let moved = PointerMove { area: "notes", digest, answered: None, at, by: "ada" };
    point(&mut tx, &moved, revision, left).await?;
    tx.commit().await
}

async fn state(store: &Store) -> (Option<String>, Option<String>) {
    let mut connection = store.reader().await.unwrap();
    let pointer = pointer_of(&mut connection, "notes").await.unwrap().unwrap();
    (pointer.digest, pointer.previous)
}

fn at(now: &str, previous: Option<&str>) -> (Option<String>, Option<String>) {
    (Some(now.into()), previous.map(str::to_owned))
}

on_both! {
    async fn a_pointer_goes_forward_back_and_to_nothing(store: &Store) {
        put(store, &["a", "b", "c"]).await;
        go(store, Some("a"), VersionStage::Retired, 1).await.unwrap();
        assert_eq!(state(store).await, at("a", None));
        go(store, Some("b"), VersionStage::Retired, 2).await.unwrap();
        go(store, Some("c"), VersionStage::Retired, 3).await.unwrap();
        assert_eq!(state(store).await, at("c", Some("b")));
        go(store, Some("b"), VersionStage::Withdrawn, 4).await.unwrap();
        assert_eq!(state(store).await, at("b", Some("a")));
        go(store, None, VersionStage::Withdrawn, 5).await.unwrap();
        assert_eq!(state(store).await, (None, Some("b".into())));
        let mut reader = store.reader().await.unwrap();
        let history = history(&mut reader, "notes", i64::MAX, 10).await.unwrap();
        let stages: Vec<_> = history.iter().map(|v| (v.digest.as_str(), v.stage)).collect();
        let expected =
            [("c", VersionStage::Withdrawn), ("b", VersionStage::Withdrawn), ("a", VersionStage::Retired)];
        assert_eq!(stages, expected);
        assert_eq!(history[1].live_at, Some(Timestamp(4)));
    }

    async fn what_was_removed_comes_back_also_when_it_was_the_only_version(store: &Store) {
        put(store, &["a", "b"]).await;
        go(store, Some("a"), VersionStage::Retired, 1).await.unwrap();
        for at in [2, 3] {
            go(store, None, VersionStage::Withdrawn, at).await.unwrap();
            assert_eq!(state(store).await, (None, Some("a".into())), "removed again or not");
        }
        go(store, Some("a"), VersionStage::Withdrawn, 4).await.unwrap();
        assert_eq!(state(store).await, at("a", None));
        go(store, Some("b"), VersionStage::Retired, 5).await.unwrap();
        go(store, None, VersionStage::Withdrawn, 6).await.unwrap();
        go(store, Some("b"), VersionStage::Withdrawn, 7).await.unwrap();
        assert_eq!(state(store).await, at("b", Some("a")), "the next step back is older");
    }

    async fn a_rollback_over_several_versions_withdraws_those_in_between(store: &Store) {
        put(store, &["a", "b", "c", "d"]).await;
        for (at, digest) in ["a", "b", "c", "d"].into_iter().enumerate() {
            go(store, Some(digest), VersionStage::Retired, i64::try_from(at).unwrap()).await.unwrap();
        }
        let mut connection = store.writer().await.unwrap();
        withdraw_later(&mut connection, "notes", "b").await.unwrap();
        drop(connection);
        go(store, Some("b"), VersionStage::Withdrawn, 9).await.unwrap();
        assert_eq!(state(store).await, at("b", Some("a")));
    }

    async fn versions_are_found_by_the_begin_of_their_digest_or_their_number(store: &Store) {
        put(store, &["abcd1", "abcd2", "abce3"]).await;
        let mut connection = store.reader().await.unwrap();
        for (named, expected) in [
            ("abcd", vec!["abcd2", "abcd1"]),
            ("abcd1", vec!["abcd1"]),
            ("ABCD1", vec!["abcd1"]),
            ("1.0.0", vec!["abce3", "abcd2", "abcd1"]),
            ("bcd1", vec![]),
            ("abc%", vec![]),
        ] {
            let found = matching(&mut connection, "notes", named, 9).await.unwrap();
            let found: Vec<&str> = found.iter().map(|one| one.digest.as_str()).collect();
            assert_eq!(found, expected, "{named}");
        }
    }

    async fn an_approval_is_given_once_and_stays_with_the_version(store: &Store) {
        let mut connection = store.writer().await.unwrap();
        let waiting = StoredVersion { stage: VersionStage::AwaitingApproval, ..version("a") };
        insert(&mut connection, &waiting, "{}").await.unwrap();
        let at = Timestamp(9);
        assert!(approve(&mut connection, "notes", "a", "bob", at).await.unwrap());
        assert!(!approve(&mut connection, "notes", "a", "eve", at).await.unwrap());
        insert(&mut connection, &waiting, "{}").await.unwrap();
        let kept = find(&mut connection, "notes", "a").await.unwrap().unwrap();
        assert_eq!((kept.stage, kept.approved_by.as_deref()), (VersionStage::Staged, Some("bob")));
    }

    async fn of_two_who_move_a_pointer_one_wins(store: &Store) {
        put(store, &["a"]).await;
        go(store, Some("a"), VersionStage::Retired, 1).await.unwrap();
        let digest = Some("a");
        let moved =
            PointerMove { area: "notes", digest, answered: None, at: Timestamp(2), by: "bob" };
        for stale in [0, 7] {
            let mut tx = store.begin(TransactionAccess::WriteLocked).await.unwrap();
            let lost = point(&mut tx, &moved, stale, VersionStage::Retired).await;
            assert!(matches!(lost, Err(Error::RunAgain)), "{lost:?}");
        }
        let unknown = go(store, Some("x"), VersionStage::Retired, 2).await;
        assert!(matches!(unknown, Err(Error::NotFound)), "{unknown:?}");
        assert_eq!(state(store).await, at("a", None));
    }
}
