//! Tests of units of work against both databases.

mod bounds;
mod conflicts;
mod documents;
mod dropped;
mod effects;
mod isolation;
mod others;
mod paging;
mod planner;
mod queue;
mod read_log;
mod trouble;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    AccessibleCollection, AreaPolicy, CommitAdditions, EventSubscriber, HostCallError, StoredReply,
    UnitOfWork, UnitOfWorkSpec,
};
use assurance_core::access::IsolationProfile;
use assurance_core::domain::area::{CallContext, CallOrigin};
use assurance_core::domain::document::{
    Document, DocumentWrite, FieldTest, FieldValue, PageStart, Query, QueryCondition, SortField,
};
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::job::{Lane, RequestedEventsDocumentField};
use assurance_core::domain::manifest::{FieldKind, IndexSpec, JobSpec};
use assurance_core::domain::time::Timestamp;
use assurance_core::secrets::Keys;
use assurance_outside::egress::EgressRequest;
use assurance_store::collections;
use assurance_store::{Error, Store, SubstringIndexSpec};

/// Time of the tests' calls.
pub(super) const NOW: Timestamp = Timestamp(1_700_000_000_000_000);

/// An area with a workspace of its own.
#[derive(Clone)]
pub(super) struct Area {
    store: Store,
    keys: Arc<Keys>,
    scope: Arc<AreaPolicy>,
    workspace: WorkspaceId,
    user: UserId,
}

impl Area {
    /// Creates the collections `items` and, of another area, `other.things`.
    pub(super) async fn installed(store: &Store) -> Self {
        let items = items();
        let things =
            AccessibleCollection { full_name: "other.things".into(), own: false, ..items.clone() };
        collections::ensure(store, &[items.clone(), things.clone()]).await.unwrap();
        let collections = [("items".to_owned(), items), ("other.things".to_owned(), things)];
        let subscriber = EventSubscriber {
            area: "other".into(),
            lane: Lane::Delivery,
            max_attempts: 3,
            timeout_ms: 9,
            merged: false,
            requests: None,
        };
        let job = JobSpec {
            name: "tidy".into(),
            lane: Lane::Maintenance,
            max_attempts: 5,
            timeout_ms: 1_000,
        };
        let scope = AreaPolicy {
            area: "test".into(),
            collections: collections.into(),
            events: [("item.made".to_owned(), vec![subscriber])].into(),
            jobs: [("tidy".to_owned(), job)].into(),
            live: ["test".to_owned(), "other".to_owned()].into(),
            ..AreaPolicy::default()
        };
        Self {
            store: store.clone(),
            keys: Arc::new(Keys::new([3; 32])),
            scope: Arc::new(scope),
            workspace: WorkspaceId::new(),
            user: UserId::new(),
        }
    }

    pub(super) fn elsewhere(&self) -> Self {
        Self { workspace: WorkspaceId::new(), ..self.clone() }
    }

    pub(super) fn spec(&self) -> UnitOfWorkSpec {
        let (workspace, origin) = (self.workspace, CallOrigin::SmokeTest);
        let call = CallContext { workspace, now: NOW, seed: [9; 32], origin };
        UnitOfWorkSpec {
            actor: Some(self.user),
            writes: true,
            ..UnitOfWorkSpec::of(&self.scope, call)
        }
    }

    pub(super) fn unit(&self) -> UnitOfWork {
        self.with(|_| {})
    }

    pub(super) fn with(&self, change: impl FnOnce(&mut UnitOfWorkSpec)) -> UnitOfWork {
        let mut spec = self.spec();
        change(&mut spec);
        UnitOfWork::new(self.store.clone(), Arc::clone(&self.keys), spec)
    }

    /// Runs a call and commits it.
    pub(super) async fn commit<T>(&self, work: impl AsyncFnOnce(&mut UnitOfWork) -> T) -> T {
        let mut unit = self.unit();
        let result = work(&mut unit).await;
        unit.commit(CommitAdditions::default()).await.unwrap();
        result
    }

    /// Writes the documents in a call of their own and commits it.
    pub(super) async fn put(&self, writes: Vec<DocumentWrite>) -> Result<Vec<u64>, Error> {
        let mut unit = self.unit();
        let versions = unit.write("items", writes).await.unwrap();
        unit.commit(CommitAdditions::default()).await.map(|()| versions)
    }

    /// Restricts the deliveries of events to those that documents request.
    pub(super) fn request_events(&mut self, collection: &str, member: &str) {
        let requests =
            RequestedEventsDocumentField { collection: collection.into(), member: member.into() };
        let subscribers = Arc::make_mut(&mut self.scope).events.values_mut().flatten();
        subscribers.for_each(|subscriber| subscriber.requests = Some(requests.clone()));
    }

    /// Merges the events for their subscriber.
    pub(super) fn merge_events(&mut self) {
        let subscribers = Arc::make_mut(&mut self.scope).events.values_mut().flatten();
        subscribers.for_each(|subscriber| subscriber.merged = true);
    }

    /// Publishes `item.made`, in a transaction if the call also reads a page.
    pub(super) async fn publish_made(&self, reads: bool) {
        let mut unit = self.with(|spec| spec.call.seed = [reads.into(); 32]);
        if reads {
            unit.write("items", vec![replace("b", None, "{}")]).await.unwrap();
            unit.query(&by(&[])).await.unwrap();
        }
        unit.publish("item.made", "{}".into()).unwrap();
        unit.commit(CommitAdditions::default()).await.unwrap();
    }

    pub(super) async fn get(&self, id: &str) -> Option<Document> {
        self.unit().get("items", id).await.unwrap()
    }

    pub(super) async fn ids(&self, conditions: Vec<QueryCondition>) -> Vec<String> {
        let query = Query { conditions, ..by(&[]) };
        let page = self.unit().query(&query).await.unwrap();
        page.documents.into_iter().map(|document| document.id).collect()
    }

    pub(super) fn reply(&self, key: &str) -> StoredReply {
        StoredReply {
            workspace: self.workspace,
            user: self.user,
            operation: "make_item".into(),
            key: key.into(),
            fingerprint: [1; 32],
            status: 201,
            body: Some("{}".into()),
            version: Some(1),
            expires_at: NOW.plus_ms(1_000),
        }
    }
}

/// Writes one document, with retries: PostgreSQL also reports false write
/// conflicts.
pub(super) async fn put_in_the_end(area: &Area, write: DocumentWrite) {
    for _ in 0..20 {
        match area.put(vec![write.clone()]).await {
            Err(Error::RunAgain) => tokio::time::sleep(std::time::Duration::from_millis(2)).await,
            put => return drop(put.unwrap()),
        }
    }
    panic!("others always came first");
}

pub(super) fn items() -> AccessibleCollection {
    let index = |fields: &[&str], unique| IndexSpec {
        fields: fields.iter().map(|&field| field.to_owned()).collect(),
        unique,
    };
    AccessibleCollection {
        full_name: "test.items".into(),
        own: true,
        fields: BTreeMap::from([
            ("name".to_owned(), FieldKind::Text),
            ("email".to_owned(), FieldKind::Text),
            ("rank".to_owned(), FieldKind::Integer),
            ("done".to_owned(), FieldKind::Boolean),
        ]),
        indexes: vec![
            index(&["rank"], false),
            index(&["done", "name"], false),
            index(&["email"], true),
        ],
        searched: vec![SubstringIndexSpec {
            text: "name".into(),
            by: "name".into(),
            unless: vec!["email".into()],
        }],
    }
}

pub(super) fn create(id: &str, body: &str) -> DocumentWrite {
    DocumentWrite::Create { id: id.into(), body: body.into() }
}

pub(super) fn replace(id: &str, expected: Option<u64>, body: &str) -> DocumentWrite {
    DocumentWrite::Replace { id: id.into(), expected, body: body.into() }
}

pub(super) fn delete(id: &str) -> DocumentWrite {
    DocumentWrite::Delete { id: id.into(), expected: None }
}

pub(super) fn is(field: &str, test: FieldTest) -> QueryCondition {
    QueryCondition { fields: vec![field.into()], test }
}

/// Returns a query of `items` in an order; `-field` is descending.
pub(super) fn by(order: &[&str]) -> Query {
    let order = order
        .iter()
        .map(|field| SortField {
            field: field.trim_start_matches('-').into(),
            descending: field.starts_with('-'),
        })
        .collect();
    Query {
        collection: "items".into(),
        conditions: Vec::new(),
        order,
        start: PageStart::First,
        limit: 100,
    }
}

pub(super) fn text(text: &str) -> FieldValue {
    FieldValue::Text(text.into())
}

/// Returns a request without a body to this URL.
pub(super) fn request_to(url: &str) -> EgressRequest {
    EgressRequest {
        method: "GET".to_owned(),
        url: url.to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        timeout_ms: 0,
        max_response_bytes: 0,
    }
}

/// Returns the store error that ended a call, which gets no error for the guest.
pub(super) fn aborted<T, E: std::error::Error>(
    result: Result<T, HostCallError<E>>,
) -> Result<T, Error> {
    match result {
        Ok(value) => Ok(value),
        Err(HostCallError::Abort(error)) => Err(error),
        Err(HostCallError::Refused(refusal)) => panic!("{refusal:?}"),
    }
}

/// Returns the error that the guest received.
pub(super) fn refused<T: std::fmt::Debug, E: std::error::Error>(
    result: Result<T, HostCallError<E>>,
) -> E {
    match result {
        Err(HostCallError::Refused(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

pub(super) fn route() -> Option<Arc<IsolationProfile>> {
    Some(Arc::default())
}
