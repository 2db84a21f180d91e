//! Tests of comparing a call with another one's read log.

use serde_json::json;

use super::*;
use crate::ReadLog;
use assurance_store::testing::on_both;

/// Reads, writes, reads its own write, and publishes an event.
async fn work(unit: &mut UnitOfWork) -> (serde_json::Value, bool, u64) {
    let seen = unit.get("items", "a").await.unwrap().unwrap();
    let seen = serde_json::from_str(&seen.body).unwrap();
    let there = unit.get("items", "b").await.unwrap().is_some();
    let writes = vec![replace("a", None, r#"{"rank":2}"#), create("b", r#"{"rank":3}"#)];
    unit.write("items", writes).await.unwrap();
    let count = unit.count("items", &[], None).await.unwrap();
    unit.publish("item.made", r#"{"n":1}"#.into()).unwrap();
    (seen, there, count)
}

on_both! {
    async fn a_played_call_sees_what_the_recorded_one_saw_and_leaves_nothing(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("a", r#"{"rank":1}"#)]).await.unwrap();
        let log = Arc::new(ReadLog::default());
        let mut live = area.unit().with_read_log(&log);
        let seen = work(&mut live).await;
        assert_eq!(seen, (json!({"rank": 1}), false, 2));
        live.commit(CommitAdditions::default()).await.unwrap();

        let mut played = area.unit().replaying(&log);
        assert_eq!(work(&mut played).await, seen);
        assert!(log.is_exact());
        let left = log.effects();
        assert_eq!(left["documents"]["test.items"]["b"], json!({"rank": 3}));
        assert_eq!(left["events"], json!({"item.made": [{"n": 1}]}));
        assert_eq!(played.into_effects(), left);
        assert_eq!(area.get("a").await.unwrap().version, 2);
    }

    async fn what_only_the_played_call_asks_for_is_read_later_and_said_to_be(store: &Store) {
        let area = Area::installed(store).await;
        let log = Arc::new(ReadLog::default());
        let mut live = area.unit().with_read_log(&log);
        live.get("items", "a").await.unwrap();
        live.commit(CommitAdditions::default()).await.unwrap();
        area.put(vec![create("a", "{}"), create("b", "{}")]).await.unwrap();
        let mut played = area.unit().replaying(&log);
        assert!(played.get("items", "a").await.unwrap().is_none());
        assert!(log.is_exact());
        assert!(played.get("items", "b").await.unwrap().is_some());
        assert!(!log.is_exact());
    }

    async fn a_log_of_too_many_results_keeps_none(store: &Store) {
        let area = Area::installed(store).await;
        let unit = || area.with(|spec| spec.limits.max_bytes = 1_000);
        let named = |name: String| [is("name", FieldTest::Equals(text(&name)))];
        let log = Arc::new(ReadLog::default());
        let mut live = unit().with_read_log(&log);
        for name in ["a", "b", "c"] {
            live.count("items", &named(name.repeat(300)), None).await.unwrap();
        }
        let mut played = unit().replaying(&log);
        assert_eq!(played.count("items", &named("a".repeat(300)), None).await.unwrap(), 0);
        assert!(!log.is_exact());
    }
}
