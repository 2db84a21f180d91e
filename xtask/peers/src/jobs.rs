//! Jobs as plain rows: 64 are claimed in one transaction and deleted in another one.

use std::str::FromStr as _;

use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use crate::Stopwatch;

/// Jobs of one claim.
const BATCH: i64 = 64;
/// Connections to PostgreSQL that claim.
const CONNECTIONS: u32 = 4;

/// Creates the table with this number of jobs.
pub async fn fill(url: &str, number: u32) -> anyhow::Result<()> {
    if url.starts_with("postgres") {
        let pool = PgPoolOptions::new().connect(url).await?;
        sqlx::raw_sql(
            "CREATE TABLE bare_jobs (id bigint PRIMARY KEY, payload text NOT NULL, claimed boolean NOT NULL); \
             CREATE INDEX bare_jobs_waiting ON bare_jobs (id) WHERE NOT claimed",
        )
        .execute(&pool)
        .await?;
        sqlx::query(
            "INSERT INTO bare_jobs SELECT n, '{}', false FROM generate_series(1, $1::bigint) AS n",
        )
        .bind(i64::from(number))
        .execute(&pool)
        .await?;
        sqlx::raw_sql("ANALYZE bare_jobs").execute(&pool).await?;
        return Ok(());
    }
    let mut connection = open(url).await?;
    sqlx::raw_sql(
        "CREATE TABLE bare_jobs (id INTEGER PRIMARY KEY, payload TEXT NOT NULL, claimed INTEGER NOT NULL); \
         CREATE INDEX bare_jobs_waiting ON bare_jobs (id) WHERE claimed = 0",
    )
    .execute(&mut connection)
    .await?;
    sqlx::query(
        "INSERT INTO bare_jobs WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < ?) \
         SELECT id, '{}', 0 FROM n",
    )
    .bind(number)
    .execute(&mut connection)
    .await?;
    connection.close().await?;
    Ok(())
}

/// Drains the table.
pub async fn run(url: &str, number: u32) -> anyhow::Result<()> {
    if url.starts_with("postgres") {
        return postgres(url, number).await;
    }
    let mut connection = open(url).await?;
    let measurement = Stopwatch::begin()?;
    loop {
        let claimed: Vec<(i64, String)> = sqlx::query_as(
            "UPDATE bare_jobs SET claimed = 1 WHERE id IN \
             (SELECT id FROM bare_jobs WHERE claimed = 0 ORDER BY id LIMIT ?) RETURNING id, payload",
        )
        .bind(BATCH)
        .fetch_all(&mut connection)
        .await?;
        let (Some((first, _)), Some((last, _))) = (claimed.first(), claimed.last()) else { break };
        sqlx::query("DELETE FROM bare_jobs WHERE id BETWEEN ? AND ? AND claimed = 1")
            .bind(first)
            .bind(last)
            .execute(&mut connection)
            .await?;
    }
    measurement.print(number.into())
}

async fn open(file: &str) -> anyhow::Result<SqliteConnection> {
    let options = SqliteConnectOptions::from_str(file)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    Ok(options.connect().await?)
}

async fn postgres(url: &str, number: u32) -> anyhow::Result<()> {
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await?;
    let measurement = Stopwatch::begin()?;
    let mut workers = Vec::new();
    for _ in 0..CONNECTIONS {
        let pool = pool.clone();
        workers.push(tokio::spawn(async move {
            let mut connection = pool.acquire().await?;
            loop {
                let claimed: Vec<(i64, String)> = sqlx::query_as(
                    "UPDATE bare_jobs SET claimed = true WHERE id IN (SELECT id FROM bare_jobs \
                     WHERE NOT claimed ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED) \
                     RETURNING id, payload",
                )
                .bind(BATCH)
                .fetch_all(&mut *connection)
                .await?;
                if claimed.is_empty() {
                    return anyhow::Ok(());
                }
                let ids: Vec<i64> = claimed.into_iter().map(|(id, _)| id).collect();
                sqlx::query("DELETE FROM bare_jobs WHERE id = ANY($1)")
                    .bind(ids)
                    .execute(&mut *connection)
                    .await?;
            }
        }));
    }
    for worker in workers {
        worker.await??;
    }
    measurement.print(number.into())
}
