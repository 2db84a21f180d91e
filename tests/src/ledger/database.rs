//! Reads the database under load directly, without the service.

use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{
    AssertSqlSafe, Connection as _, Executor as _, FromRow, PgConnection, SqliteConnection,
};

use super::cluster::Cluster;
use crate::Backend;

/// A separate connection to the database.
#[derive(Debug)]
pub(crate) enum Database {
    /// Connection to the database file of the only node.
    Sqlite(SqliteConnection),
    /// Connection to the PostgreSQL server.
    Postgres(PgConnection),
}

/// A document.
#[derive(Debug)]
pub(crate) struct StoredDocument {
    /// Workspace without dashes.
    pub workspace: String,
    /// Collection, as `area.name`.
    pub collection: String,
    /// Id of the document.
    pub id: String,
    /// Version, from 1.
    pub version: u64,
    /// Content as JSON.
    pub text: String,
}

/// An event, queued for the area `webhooks`, which subscribes to all events.
#[derive(Debug)]
pub(crate) struct Event {
    /// Id of the event.
    pub id: String,
    /// Name of the event, as `noun.verb`.
    pub name: String,
    /// Data of the event.
    pub data: Value,
}

const DOCUMENTS: [&str; 2] = [
    "SELECT lower(hex(workspace_id)), collection, id, version, body FROM documents \
     WHERE updated_at >= $1 AND collection <> 'context.snapshots'",
    "SELECT replace(workspace_id::text, '-', ''), collection, id, version, body::text \
     FROM documents WHERE updated_at >= $1 AND collection <> 'context.snapshots'",
];
const EVENTS: [&str; 2] = ["SELECT payload FROM ledger_events WHERE created_at >= $1"; 2];
/// Statements that create a trigger. It copies each event in the same transaction, because
/// delivered events are deleted.
const COPY_EVENTS: [&str; 2] = [
    "CREATE TABLE ledger_events (payload TEXT, created_at INTEGER); \
     CREATE TRIGGER ledger_events AFTER INSERT ON jobs \
     WHEN NEW.kind = 'event' AND NEW.area = 'webhooks' \
     BEGIN INSERT INTO ledger_events VALUES (NEW.payload, NEW.created_at); END",
    "CREATE TABLE ledger_events (payload text, created_at bigint); \
     CREATE FUNCTION ledger_events() RETURNS trigger LANGUAGE plpgsql AS \
     $$ BEGIN INSERT INTO ledger_events VALUES (NEW.payload, NEW.created_at); RETURN NULL; END $$; \
     CREATE TRIGGER ledger_events AFTER INSERT ON jobs FOR EACH ROW \
     WHEN (NEW.kind = 'event' AND NEW.area = 'webhooks') EXECUTE FUNCTION ledger_events()",
];
const DUE: [&str; 2] = ["SELECT count(*) FROM jobs WHERE status IN ('queued', 'running', 'retrying') \
     AND available_at <= $1 AND kind <> 'deliver'"; 2];
const EXISTS: [&str; 2] = ["SELECT count(*) FROM documents WHERE collection = $1 AND id = $2"; 2];
const UNFINISHED: [&str; 2] = ["SELECT id || ': ' || CAST(body AS text) FROM documents \
     WHERE collection = 'uploads.uploads' AND body ->> 'completed_at' IS NOT NULL \
     AND body ->> 'validation_stage' NOT IN ('ready', 'rejected') \
     OR collection = 'schedules.audits' AND body ->> 'state' NOT IN ('completed', 'failed')";
    2];
const GIVEN_UP: [&str; 2] = ["SELECT area || '.' || kind || ': ' || coalesce(last_error, '') FROM jobs \
     WHERE status IN ('failed', 'dead') AND kind <> 'deliver'"; 2];

/// Makes the tables of all collections one view, `documents`, as on PostgreSQL.
async fn unite_collections(connection: &mut SqliteConnection) {
    let collections: Vec<String> = sqlx::query_scalar("SELECT name FROM collections")
        .fetch_all(&mut *connection)
        .await
        .expect("the collections");
    let of_one = |name: &String| format!("SELECT '{name}' AS collection, * FROM \"{name}\"");
    let all: Vec<String> = collections.iter().map(of_one).collect();
    let view = format!("CREATE TEMP VIEW documents AS {}", all.join(" UNION ALL "));
    connection.execute(sqlx::raw_sql(AssertSqlSafe(view))).await.expect("a view");
}

impl Database {
    /// Connects to the database of these nodes.
    pub(crate) async fn of(cluster: &Cluster) -> Self {
        match cluster.backend {
            Backend::Sqlite => {
                let file = cluster.nodes[0].folder().join("data/assurance.sqlite");
                let options = SqliteConnectOptions::new().filename(file);
                let connection = SqliteConnection::connect_with(&options).await;
                let mut connection = connection.expect("a readable database");
                unite_collections(&mut connection).await;
                Self::Sqlite(connection)
            }
            Backend::Postgres => {
                let connection = PgConnection::connect(&cluster.database).await;
                Self::Postgres(connection.expect("a connection"))
            }
        }
    }

    /// Starts to copy every event.
    pub(crate) async fn copy_events(&mut self) {
        let made = match self {
            Self::Sqlite(c) => c.execute(sqlx::raw_sql(COPY_EVENTS[0])).await.map(drop),
            Self::Postgres(c) => c.execute(sqlx::raw_sql(COPY_EVENTS[1])).await.map(drop),
        };
        made.expect("a trigger");
    }

    /// Starts a snapshot that later writes do not change.
    pub(crate) async fn freeze(&mut self) {
        let begun = match self {
            Self::Sqlite(c) => c.execute("BEGIN").await.map(drop),
            Self::Postgres(c) => c.execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.map(drop),
        };
        begun.expect("a transaction");
    }

    /// Returns the documents written since a time, in microseconds since 1970.
    pub(crate) async fn documents(&mut self, since: i64) -> Vec<StoredDocument> {
        let rows = self.rows::<(String, String, String, i64, String)>(DOCUMENTS, since).await;
        let stored = |(workspace, collection, id, version, text)| {
            let version = u64::try_from(version).expect("a version");
            StoredDocument { workspace, collection, id, version, text }
        };
        rows.into_iter().map(stored).collect()
    }

    /// Returns the events since a time.
    pub(crate) async fn events(&mut self, since: i64) -> Vec<Event> {
        let event = |(payload,): (String,)| {
            let mut payload: Value = serde_json::from_str(&payload).expect("JSON");
            let text = |name: &str| payload[name].as_str().unwrap_or_default().to_owned();
            Event { id: text("id"), name: text("name"), data: payload["data"].take() }
        };
        self.rows(EVENTS, since).await.into_iter().map(event).collect()
    }

    /// Returns the number of due or running jobs, without webhooks' deliveries.
    pub(crate) async fn due(&mut self, now: i64) -> i64 {
        self.rows::<(i64,)>(DUE, now).await[0].0
    }

    /// Returns whether the document with this collection and id exists.
    pub(crate) async fn has(&mut self, collection: &str, id: &str) -> bool {
        let found: sqlx::Result<i64> = match self {
            Self::Sqlite(c) => {
                sqlx::query_scalar(EXISTS[0]).bind(collection).bind(id).fetch_one(c).await
            }
            Self::Postgres(c) => {
                sqlx::query_scalar(EXISTS[1]).bind(collection).bind(id).fetch_one(c).await
            }
        };
        found.expect("a count") > 0
    }

    /// Returns audits and completed uploads that have not ended.
    pub(crate) async fn unfinished(&mut self) -> Vec<String> {
        self.rows::<(String,)>(UNFINISHED, 0).await.into_iter().map(|(text,)| text).collect()
    }

    /// Returns jobs that failed for good, without webhooks' deliveries.
    pub(crate) async fn given_up(&mut self) -> Vec<String> {
        self.rows::<(String,)>(GIVEN_UP, 0).await.into_iter().map(|(text,)| text).collect()
    }

    /// Returns the rows of a statement. Its first parameter is a time, if it has one.
    async fn rows<T>(&mut self, statement: [&'static str; 2], since: i64) -> Vec<T>
    where
        T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let timed = statement[0].contains("$1");
        let found = match self {
            Self::Sqlite(connection) => {
                let query = sqlx::query_as(statement[0]);
                let query = if timed { query.bind(since) } else { query };
                query.fetch_all(connection).await
            }
            Self::Postgres(connection) => {
                let query = sqlx::query_as(statement[1]);
                let query = if timed { query.bind(since) } else { query };
                query.fetch_all(connection).await
            }
        };
        found.expect("rows")
    }
}
