//! Tests of documents as one call sees them, and as others see them afterwards.

use super::*;
use crate::DocumentError;
use assurance_store::testing::on_both;

on_both! {
    async fn a_document_is_made_changed_and_deleted(store: &Store) {
        let area = Area::installed(store).await;
        assert_eq!(area.put(vec![create("a", r#"{"name":"é","x":[1,{"y":null}]}"#)]).await.unwrap(), [1]);
        let made = area.get("a").await.unwrap();
        let body: serde_json::Value = serde_json::from_str(&made.body).unwrap();
        assert_eq!(body, serde_json::json!({"name": "é", "x": [1, {"y": null}]}));
        assert_eq!((made.version, made.created_at, made.updated_at), (1, NOW, NOW));

        let mut later = area.with(|spec| spec.call.now = NOW.plus_ms(5));
        assert_eq!(later.write("items", vec![replace("a", Some(1), "{}")]).await.unwrap(), [2]);
        later.commit(CommitAdditions::default()).await.unwrap();
        let changed = area.get("a").await.unwrap();
        assert_eq!((changed.version, changed.body.as_str()), (2, "{}"));
        assert_eq!((changed.created_at, changed.updated_at), (NOW, NOW.plus_ms(5)));

        assert_eq!(area.put(vec![delete("a")]).await.unwrap(), [0]);
        assert_eq!(area.get("a").await, None);
    }

    async fn a_call_sees_its_own_writes(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("a", r#"{"rank":1}"#), create("b", r#"{"rank":2}"#)]).await.unwrap();
        let mut unit = area.unit();
        let writes = vec![
            create("c", r#"{"rank":3}"#),
            replace("c", Some(1), r#"{"rank":4}"#),
            replace("a", None, r#"{"rank":9}"#),
            delete("b"),
            create("b", r#"{"rank":5}"#),
        ];
        assert_eq!(unit.write("items", writes).await.unwrap(), [1, 2, 2, 0, 2]);
        assert_eq!(unit.get("items", "c").await.unwrap().unwrap().version, 2);
        let ids = ["b", "none", "a"].map(str::to_owned);
        let many = unit.get_many("items", &ids).await.unwrap();
        assert_eq!(many.iter().map(|d| d.id.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        let page = unit.query(&by(&["-rank"])).await.unwrap();
        assert_eq!(page.documents.iter().map(|d| d.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        // Documents that were flushed for the query can be changed again.
        assert_eq!(unit.write("items", vec![replace("a", Some(2), "{}"), delete("c")]).await.unwrap(), [3, 0]);
        assert_eq!(unit.count("items", &[], None).await.unwrap(), 2);
        assert_eq!(area.get("c").await, None);
        assert_eq!(area.ids(vec![]).await, ["b", "a"], "nothing is seen before the commit");
        unit.commit(CommitAdditions::default()).await.unwrap();
        assert_eq!(area.get("a").await.unwrap().version, 3);
        assert_eq!(area.get("b").await.unwrap().version, 2);
    }

    async fn a_document_created_again_continues_the_versions(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("a", "{}")]).await.unwrap();
        let again = vec![delete("a"), create("a", r#"{"rank":1}"#)];
        assert_eq!(area.put(again.clone()).await.unwrap(), [0, 2]);
        let stale = area.unit().write("items", vec![replace("a", Some(1), "{}")]).await;
        assert_eq!(refused(stale), DocumentError::VersionConflict(2));
        // The deletion is sent to the database before the creation.
        for (locked, version) in [(false, 3), (true, 4)] {
            let mut unit = area.with(|spec| spec.locked = locked);
            for write in again.clone() {
                unit.write("items", vec![write]).await.unwrap();
                unit.count("items", &[], None).await.unwrap();
            }
            unit.commit(CommitAdditions::default()).await.unwrap();
            assert_eq!(area.get("a").await.unwrap().version, version);
        }
    }

    async fn a_call_that_is_dropped_leaves_nothing(store: &Store) {
        let area = Area::installed(store).await;
        let mut unit = area.unit();
        unit.write("items", vec![create("a", "{}")]).await.unwrap();
        unit.query(&by(&[])).await.unwrap();
        assert!(unit.wrote());
        drop(unit);
        assert_eq!(area.get("a").await, None);
        area.put(vec![create("a", "{}")]).await.unwrap();
    }

    async fn writes_of_one_list_are_all_or_none(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("a", "{}")]).await.unwrap();
        let mut unit = area.unit();
        let told = unit.write("items", vec![delete("a"), replace("b", None, "{}")]).await;
        assert_eq!(refused(told), DocumentError::NotFound);
        assert!(unit.get("items", "a").await.unwrap().is_some());
        let told = unit.write("items", vec![replace("a", Some(7), "{}")]).await;
        assert_eq!(refused(told), DocumentError::VersionConflict(1));
        let told = unit.write("items", vec![create("a", "{}")]).await;
        assert_eq!(refused(told), DocumentError::AlreadyExists);
        unit.commit(CommitAdditions::default()).await.unwrap();
        assert!(area.get("a").await.is_some());
    }

    async fn nobody_reaches_what_is_not_theirs(store: &Store) {
        let area = Area::installed(store).await;
        area.put(vec![create("a", "{}")]).await.unwrap();
        let elsewhere = area.elsewhere();
        assert_eq!(elsewhere.get("a").await, None);
        assert_eq!(elsewhere.unit().count("items", &[], None).await.unwrap(), 0);
        let mut unit = area.unit();
        let misuse = |error| matches!(error, DocumentError::Misuse(_));
        assert!(misuse(refused(unit.get("items2", "a").await)));
        assert!(misuse(refused(unit.get("test.items", "a").await)));
        assert!(misuse(refused(unit.write("other.things", vec![create("a", "{}")]).await)));
        assert_eq!(unit.get("other.things", "a").await.unwrap(), None);
        let mut reader = area.with(|spec| spec.writes = false);
        assert!(misuse(refused(reader.write("items", vec![delete("a")]).await)));
        assert!(misuse(refused(unit.query(&by(&["nothing"])).await)));
        let wrong = [is("rank", FieldTest::Equals(text("1")))];
        assert!(misuse(refused(unit.count("items", &wrong, None).await)));
    }

    async fn limits_are_told_to_the_guest(store: &Store) {
        let area = Area::installed(store).await;
        let writes = (0..5).map(|n| create(&format!("{n}"), r#"{"x":"xxxxxxxxxx"}"#)).collect();
        area.put(writes).await.unwrap();
        let few = |spec: &mut UnitOfWorkSpec| spec.limits.max_documents = 3;
        assert_eq!(refused(area.with(few).query(&by(&[])).await), DocumentError::LimitExceeded);
        let short = |spec: &mut UnitOfWorkSpec| spec.limits.max_bytes = 50;
        assert_eq!(refused(area.with(short).query(&by(&[])).await), DocumentError::LimitExceeded);
        let mut unit = area.with(few);
        let page = unit.query(&Query { limit: 3, ..by(&[]) }).await.unwrap();
        assert_eq!(page.documents.len(), 3);
        assert_eq!(refused(unit.get("items", "0").await), DocumentError::LimitExceeded);
    }

    async fn thousands_are_written_at_once(store: &Store) {
        let area = Area::installed(store).await;
        let id = |n: u32| format!("{n:04}");
        let all = |write: &dyn Fn(String) -> DocumentWrite| (0..2_500).map(|n| write(id(n))).collect();
        area.put(all(&|id| create(&id, r#"{"rank":1}"#))).await.unwrap();
        assert_eq!(area.unit().count("items", &[], None).await.unwrap(), 2_500);
        for (most, found) in [(0, 0), (1_000, 1_000), (3_000, 2_500)] {
            assert_eq!(area.unit().count("items", &[], Some(most)).await.unwrap(), found);
        }
        let versions = area.put(all(&|id| replace(&id, None, r#"{"rank":2}"#))).await.unwrap();
        assert!(versions.iter().all(|version| *version == 2));
        let two = [is("rank", FieldTest::Equals(FieldValue::Integer(2)))];
        assert_eq!(area.unit().count("items", &two, None).await.unwrap(), 2_500);
        let ids: Vec<String> = (0..2_500).map(id).collect();
        assert_eq!(area.unit().get_many("items", &ids).await.unwrap().len(), 2_500);
        area.put(all(&|id| delete(&id))).await.unwrap();
        assert_eq!(area.unit().count("items", &[], None).await.unwrap(), 0);
    }

    async fn odd_ids_find_nothing(store: &Store) {
        let area = Area::installed(store).await;
        let long = "x".repeat(201);
        for id in ["", "a\0b", &long] {
            assert_eq!(area.get(id).await, None);
            let told = area.unit().write("items", vec![create(id, "{}")]).await;
            assert!(matches!(refused(told), DocumentError::Misuse(_)));
            let told = area.unit().write("items", vec![replace(id, None, "{}")]).await;
            assert_eq!(refused(told), DocumentError::NotFound);
            let start = PageStart::After(id.into());
            let told = area.unit().query(&Query { start, ..by(&[]) }).await;
            assert_eq!(refused(told), DocumentError::NotFound);
        }
        let ids = ["".to_owned(), "a\0b".to_owned()];
        assert_eq!(area.unit().get_many("items", &ids).await.unwrap(), []);
    }
}
