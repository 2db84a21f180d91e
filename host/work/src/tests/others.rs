//! Tests of access beyond the call's own area: documents and blobs of others,
//! and signed links.

use super::*;
use crate::{BlobError, DocumentError, SignedLinkError};
use assurance_core::domain::id::SessionId;
use assurance_core::domain::manifest::LinkHolder;
use assurance_core::links;
use assurance_store::testing::on_both;

on_both! {
    async fn of_an_area_that_is_not_live_nothing_is_found(store: &Store) {
        let area = Area::installed(store).await;
        let mut unit = area.unit();
        let gone = "gone.things";
        assert_eq!(unit.get(gone, "a").await.unwrap(), None);
        assert_eq!(unit.get_many(gone, &["a".to_owned()]).await.unwrap(), []);
        let query = Query { collection: gone.into(), ..by(&[]) };
        assert_eq!(unit.query(&query).await.unwrap(), assurance_core::domain::document::DocumentPage::default());
        assert_eq!(unit.count(gone, &[], None).await.unwrap(), 0);
        assert_eq!(unit.count_by(gone, &[], &[]).await.unwrap(), []);
        assert_eq!(unit.shared_blob_stat("gone", "x").await.unwrap(), None);
        // A live area's collection without permission is refused before any
        // query.
        let kept = refused(unit.get("other.secrets", "a").await);
        assert!(matches!(kept, DocumentError::Misuse(_)), "{kept:?}");
        let written = refused(unit.write(gone, vec![create("a", "{}")]).await);
        assert!(matches!(written, DocumentError::Misuse(_)), "{written:?}");
    }

    async fn blobs_are_read_by_whom_they_are_shared_with(store: &Store) {
        let area = Area::installed(store).await;
        area.commit(async |unit| unit.blob_write("x", b"0123456789".to_vec()).await.unwrap()).await;
        let reader = |shared: &[&str]| {
            let scope = AreaPolicy {
                area: "other".into(),
                shared_blobs: shared.iter().map(ToString::to_string).collect(),
                ..AreaPolicy::clone(&area.scope)
            };
            area.with(|spec| spec.area = Arc::new(scope))
        };
        let mut unit = reader(&["test"]);
        assert_eq!(unit.shared_blob_stat("test", "x").await.unwrap().unwrap().size, 10);
        assert_eq!(unit.shared_blob_read("test", "x", 8, 9).await.unwrap(), b"89");
        assert_eq!(refused(unit.shared_blob_read("test", "y", 0, 1).await), BlobError::NotFound);
        assert_eq!(unit.blob_stat("x").await.unwrap(), None, "its own are others");
        let closed = refused(reader(&[]).shared_blob_stat("test", "x").await);
        assert_eq!(closed, BlobError::NotShared("test".into()));
    }

    async fn a_link_is_bound_to_whom_its_route_says(store: &Store) {
        let area = Area::installed(store).await;
        let scope = AreaPolicy {
            links: [
                ("put_item".to_owned(), LinkHolder::Bearer),
                ("come_back".to_owned(), LinkHolder::SameSession),
            ]
            .into(),
            ..AreaPolicy::clone(&area.scope)
        };
        let (scope, session, until) = (Arc::new(scope), SessionId::new(), NOW.plus_ms(1));
        let unit = |session| area.with(|spec| {
            spec.area = Arc::clone(&scope);
            spec.session = session;
        });
        let token = unit(None).sign_link("put_item", r#"{"n":1}"#.into(), until).unwrap();
        let grant = links::open(&area.keys, &token, None, NOW).unwrap();
        assert_eq!((grant.workspace, grant.user), (area.workspace, Some(area.user)));
        assert_eq!((grant.area.as_str(), grant.claims.as_str()), ("test", r#"{"n":1}"#));

        let token = unit(Some(session)).sign_link("come_back", "{}".into(), until).unwrap();
        assert!(links::open(&area.keys, &token, Some(session), NOW).is_some());
        let sign = |operation: &str, claims: &str| unit(None).sign_link(operation, claims.into(), until);
        assert_eq!(sign("come_back", "{}"), Err(SignedLinkError::NoSession));
        for (operation, claims) in [("list_items", "{}"), ("put_item", "[]"), ("put_item", "{")] {
            let refused = sign(operation, claims);
            assert!(matches!(refused, Err(SignedLinkError::Misuse(_))), "{refused:?}");
        }
    }
}
