//! Empty jobs of apalis on SQLite with full durability, a thousand in each claim.

use std::str::FromStr as _;

use apalis::prelude::*;
use apalis_sqlite::{Config, SqliteStorage};
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use crate::{Measurement, POLL};

const BATCH: usize = 1_000;
const QUEUE: &str = "empty";

async fn pool(file: &str) -> anyhow::Result<SqlitePool> {
    let options = SqliteConnectOptions::from_str(file)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    Ok(SqlitePool::connect_with(options).await?)
}

/// Enqueues this number of jobs.
pub async fn fill(file: &str, number: u32) -> anyhow::Result<()> {
    let pool = pool(file).await?;
    SqliteStorage::setup(&pool).await?;
    let mut storage = SqliteStorage::<u32>::new(&pool).with_config(Config::default().queue(QUEUE));
    let mut left = number;
    while left > 0 {
        let chunk = left.min(1_000);
        storage.push_bulk((0..chunk).collect()).await?;
        left -= chunk;
    }
    Ok(())
}

/// Runs all jobs.
pub async fn run(file: &str, number: u32) -> anyhow::Result<()> {
    let pool = pool(file).await?;
    let config = Config::default().queue(QUEUE).batch_size(BATCH);
    let storage = SqliteStorage::<u32>::new(&pool).with_config(config);
    let measurement = Measurement::begin()?;
    let worker = WorkerBuilder::new("peer").backend(storage).build(empty);
    let running = tokio::spawn(worker.run());
    loop {
        let left: i64 = sqlx::query_scalar("SELECT count(*) FROM Jobs WHERE status <> 'Done'")
            .fetch_one(&pool)
            .await?;
        if left == 0 {
            break;
        }
        tokio::time::sleep(POLL).await;
    }
    measurement.print(number.into())?;
    running.abort();
    Ok(())
}

async fn empty(_number: u32) -> Result<(), BoxDynError> {
    Ok(())
}
