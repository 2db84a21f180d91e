//! A unit of work against both databases.

mod bounds;
mod conflicts;
mod documents;
mod dropped;
mod effects;
mod others;
mod paging;
mod planner;
mod queue;
mod tape;
mod trouble;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    AreaScope, CollectionScope, End, Fault, Habit, IdempotentReply, Limits, Subscriber, UnitOfWork,
    UnitSpec,
};
use crate::domain::area::{Call, Origin};
use crate::domain::document::{Condition, Document, Order, Query, Start, Test, Value, Write};
use crate::domain::id::{UserId, WorkspaceId};
use crate::domain::job::Lane;
use crate::domain::manifest::{FieldKind, Index, JobSpec};
use crate::domain::time::Timestamp;
use crate::secrets::Keys;
use crate::store::indexes::ensure_indexes;
use crate::store::{Error, Searched, Store};

/// The moment of the tests' calls.
pub(super) const NOW: Timestamp = Timestamp(1_700_000_000_000_000);

/// An area with a workspace of its own.
#[derive(Clone)]
pub(super) struct Area {
    store: Store,
    keys: Arc<Keys>,
    scope: Arc<AreaScope>,
    workspace: WorkspaceId,
    user: UserId,
}

impl Area {
    /// Collections `items` and, of another area, `other.things`.
    pub(super) async fn installed(store: &Store) -> Self {
        let items = items();
        ensure_indexes(store, std::slice::from_ref(&items)).await.unwrap();
        let things =
            CollectionScope { full_name: "other.things".into(), own: false, ..items.clone() };
        let collections = [("items".to_owned(), items), ("other.things".to_owned(), things)];
        let subscriber = Subscriber {
            area: "other".into(),
            lane: Lane::Delivery,
            max_attempts: 3,
            timeout_ms: 9,
        };
        let job = JobSpec {
            name: "tidy".into(),
            lane: Lane::Maintenance,
            max_attempts: 5,
            timeout_ms: 1_000,
        };
        let scope = AreaScope {
            area: "test".into(),
            collections: collections.into(),
            events: [("item.made".to_owned(), vec![subscriber])].into(),
            jobs: [("tidy".to_owned(), job)].into(),
            live: ["test".to_owned(), "other".to_owned()].into(),
            ..AreaScope::default()
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

    pub(super) fn spec(&self) -> UnitSpec {
        UnitSpec {
            area: Arc::clone(&self.scope),
            call: Call {
                workspace: self.workspace,
                now: NOW,
                seed: [9; 32],
                origin: Origin::Rehearsal,
            },
            actor: Some(self.user),
            session: None,
            by_link: false,
            writes: true,
            in_job: false,
            locked: false,
            limits: Limits::default(),
            habit: None,
        }
    }

    pub(super) fn unit(&self) -> UnitOfWork {
        self.with(|_| {})
    }

    pub(super) fn with(&self, change: impl FnOnce(&mut UnitSpec)) -> UnitOfWork {
        let mut spec = self.spec();
        change(&mut spec);
        UnitOfWork::new(self.store.clone(), Arc::clone(&self.keys), spec)
    }

    /// Writes and commits.
    pub(super) async fn put(&self, writes: Vec<Write>) -> Result<Vec<u64>, Error> {
        let mut unit = self.unit();
        let versions = unit.write("items", writes).await.unwrap();
        unit.commit(End::default()).await.map(|()| versions)
    }

    pub(super) async fn get(&self, id: &str) -> Option<Document> {
        self.unit().get("items", id).await.unwrap()
    }

    pub(super) async fn ids(&self, conditions: Vec<Condition>) -> Vec<String> {
        let query = Query { conditions, ..by(&[]) };
        let page = self.unit().query(&query).await.unwrap();
        page.documents.into_iter().map(|document| document.id).collect()
    }

    pub(super) fn reply(&self, key: &str) -> IdempotentReply {
        IdempotentReply {
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

/// Writes one document, again and again while others come first: PostgreSQL
/// also refuses what it only takes for a conflict.
pub(super) async fn put_in_the_end(area: &Area, write: Write) {
    for _ in 0..20 {
        match area.put(vec![write.clone()]).await {
            Err(Error::RunAgain) => tokio::time::sleep(std::time::Duration::from_millis(2)).await,
            put => return drop(put.unwrap()),
        }
    }
    panic!("others always came first");
}

pub(super) fn items() -> CollectionScope {
    let index = |fields: &[&str], unique| Index {
        fields: fields.iter().map(|&field| field.to_owned()).collect(),
        unique,
    };
    CollectionScope {
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
        searched: vec![Searched {
            text: "name".into(),
            by: "name".into(),
            unless: vec!["email".into()],
        }],
    }
}

pub(super) fn create(id: &str, body: &str) -> Write {
    Write::Create { id: id.into(), body: body.into() }
}

pub(super) fn replace(id: &str, expected: Option<u64>, body: &str) -> Write {
    Write::Replace { id: id.into(), expected, body: body.into() }
}

pub(super) fn delete(id: &str) -> Write {
    Write::Delete { id: id.into(), expected: None }
}

pub(super) fn is(field: &str, test: Test) -> Condition {
    Condition { fields: vec![field.into()], test }
}

/// A query of `items` in an order: `-field` descends.
pub(super) fn by(order: &[&str]) -> Query {
    let order = order
        .iter()
        .map(|field| Order {
            field: field.trim_start_matches('-').into(),
            descending: field.starts_with('-'),
        })
        .collect();
    Query {
        collection: "items".into(),
        conditions: Vec::new(),
        order,
        start: Start::First,
        limit: 100,
    }
}

pub(super) fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// What the guest was told.
pub(super) fn refused<T: std::fmt::Debug, E: std::error::Error>(result: Result<T, Fault<E>>) -> E {
    match result {
        Err(Fault::Refused(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

pub(super) fn route() -> Option<Arc<Habit>> {
    Some(Arc::default())
}
