//! The rows of a POST of a support case, copied from one in a database of the service: a document
//! and an idempotency record, in the tables and indexes of the service.

use std::str::FromStr as _;
use std::time::{Duration, Instant};

use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, FromRow, PgConnection, PgPool, SqliteConnection};
use uuid::Uuid;

use crate::Stopwatch;

/// Connections to PostgreSQL, as many as the clients of the benchmark.
const CONNECTIONS: u32 = 32;

/// A stored document. `I` is the type of ids.
#[derive(Clone, FromRow)]
struct SampleDocumentRow<I> {
    workspace_id: I,
    created_at: i64,
    body: String,
}

/// A stored idempotency record of a POST of a support case.
#[derive(Clone, FromRow)]
struct IdempotencyRecord<I> {
    user_id: I,
    operation: String,
    fingerprint: Vec<u8>,
    body: String,
    expires_at: i64,
}

const RECORD: &str = "SELECT user_id, operation, fingerprint, body, expires_at FROM idempotency \
                      WHERE status = 201 AND operation LIKE '%support%' LIMIT 1";

/// Inserts copies for this time. SQLite commits after each `per_commit` of them, PostgreSQL after
/// each one.
pub async fn run(url: &str, time: Duration, per_commit: u32) -> anyhow::Result<()> {
    if url.starts_with("postgres") {
        postgres(url, time).await
    } else {
        sqlite(url, time, per_commit).await
    }
}

async fn sqlite(file: &str, time: Duration, per_commit: u32) -> anyhow::Result<()> {
    let options = SqliteConnectOptions::from_str(file)?
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let mut connection = options.connect().await?;
    let document = "SELECT workspace_id, created_at, body FROM \"support.cases\" LIMIT 1";
    let document = sqlx::query_as(document).fetch_one(&mut connection).await?;
    let record = sqlx::query_as(RECORD).fetch_one(&mut connection).await?;
    let (measurement, mut count) = (Stopwatch::begin()?, 0);
    while measurement.begun.elapsed() < time {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        for _ in 0..per_commit {
            insert_sqlite(&mut transaction, &document, &record).await?;
            count += 1;
        }
        transaction.commit().await?;
    }
    measurement.print(count)
}

async fn insert_sqlite(
    connection: &mut SqliteConnection,
    document: &SampleDocumentRow<Vec<u8>>,
    record: &IdempotencyRecord<Vec<u8>>,
) -> sqlx::Result<()> {
    let id = Uuid::now_v7().to_string();
    let insert = "INSERT INTO \"support.cases\" \
                  (workspace_id, id, version, created_at, updated_at, body) \
                  VALUES (?1, ?2, 1, ?3, ?3, ?4)";
    sqlx::query(insert)
        .bind(&document.workspace_id)
        .bind(&id)
        .bind(document.created_at)
        .bind(&document.body)
        .execute(&mut *connection)
        .await?;
    let insert = "INSERT INTO idempotency (workspace_id, user_id, operation, key, fingerprint, \
                  status, body, version, expires_at) VALUES (?, ?, ?, ?, ?, 201, ?, 1, ?)";
    sqlx::query(insert)
        .bind(&document.workspace_id)
        .bind(&record.user_id)
        .bind(&record.operation)
        .bind(&id)
        .bind(&record.fingerprint)
        .bind(&record.body)
        .bind(record.expires_at)
        .execute(connection)
        .await?;
    Ok(())
}

async fn postgres(url: &str, time: Duration) -> anyhow::Result<()> {
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await?;
    let document = "SELECT workspace_id, created_at, body::text AS body FROM documents \
                    WHERE collection = 'support.cases' LIMIT 1";
    let document: SampleDocumentRow<Uuid> = sqlx::query_as(document).fetch_one(&pool).await?;
    let record: IdempotencyRecord<Uuid> = sqlx::query_as(RECORD).fetch_one(&pool).await?;
    let measurement = Stopwatch::begin()?;
    let until = Instant::now() + time;
    let client =
        |_| tokio::spawn(insert_until(until, pool.clone(), document.clone(), record.clone()));
    let clients: Vec<_> = (0..CONNECTIONS).map(client).collect();
    let mut count = 0;
    for client in clients {
        count += client.await??;
    }
    measurement.print(count)
}

async fn insert_until(
    until: Instant,
    pool: PgPool,
    document: SampleDocumentRow<Uuid>,
    record: IdempotencyRecord<Uuid>,
) -> sqlx::Result<u64> {
    let (mut connection, mut count) = (pool.acquire().await?, 0);
    while Instant::now() < until {
        insert_postgres(&mut connection, &document, &record).await?;
        count += 1;
    }
    Ok(count)
}

/// Sends one statement, a transaction by itself.
async fn insert_postgres(
    connection: &mut PgConnection,
    document: &SampleDocumentRow<Uuid>,
    record: &IdempotencyRecord<Uuid>,
) -> sqlx::Result<()> {
    let insert = "WITH document AS (INSERT INTO documents \
                  (workspace_id, collection, id, version, created_at, updated_at, body) \
                  VALUES ($1, 'support.cases', $2, 1, $3, $3, $4::jsonb)) \
                  INSERT INTO idempotency (workspace_id, user_id, operation, key, fingerprint, \
                  status, body, version, expires_at) VALUES ($1, $5, $6, $2, $7, 201, $8, 1, $9)";
    sqlx::query(insert)
        .bind(document.workspace_id)
        .bind(Uuid::now_v7().to_string())
        .bind(document.created_at)
        .bind(&document.body)
        .bind(record.user_id)
        .bind(&record.operation)
        .bind(&record.fingerprint)
        .bind(&record.body)
        .bind(record.expires_at)
        .execute(connection)
        .await?;
    Ok(())
}
