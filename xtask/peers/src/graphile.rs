//! Runs empty jobs on graphile_worker, with the settings of its own benchmark.

use std::time::Duration;

use anyhow::bail;
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, WorkerContext, WorkerOptions,
};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;

use crate::{Stopwatch, POLL};

const SCHEMA: &str = "graphile_worker";
const CONNECTIONS: u32 = 16;
const CONCURRENCY: usize = 24;
/// Jobs of one call that enqueues.
const CHUNK: u32 = 1_000;

/// How jobs are claimed and ended.
pub enum BatchingMode {
    /// Many in one statement: four local queues of 1,250 jobs, completions of 2 ms together.
    Together,
    /// Each by itself.
    Single,
}

#[derive(Clone, Deserialize, Serialize)]
struct EmptyJob {}

impl TaskHandler for EmptyJob {
    const IDENTIFIER: &'static str = "empty";

    async fn run(self, _context: WorkerContext) -> impl IntoTaskHandlerResult {
        Ok::<(), String>(())
    }
}

async fn options(url: &str) -> anyhow::Result<WorkerOptions> {
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await?;
    let options = WorkerOptions::default().concurrency(CONCURRENCY).schema(SCHEMA);
    Ok(options.define_job::<EmptyJob>().pg_pool(pool))
}

/// Enqueues this number of jobs.
pub async fn fill(url: &str, number: u32) -> anyhow::Result<()> {
    let worker = options(url).await?.init().await?;
    let utils = worker.create_utils();
    let spec = JobSpec::default();
    let jobs: Vec<_> = (0..CHUNK).map(|_| (EmptyJob {}, &spec)).collect();
    for _ in 0..number / CHUNK {
        utils.add_jobs::<EmptyJob>(&jobs).await?;
    }
    Ok(())
}

/// Runs all jobs.
pub async fn run(url: &str, number: u32, completion: BatchingMode) -> anyhow::Result<()> {
    let options = match &completion {
        BatchingMode::Single => options(url).await?,
        BatchingMode::Together => options(url)
            .await?
            .local_queue(LocalQueueConfig::builder().size(1_250).queue_count(4).build())
            .complete_job_batch_delay(Duration::from_millis(2)),
    };
    let worker = options.init().await?;
    let pool = PgPoolOptions::new().max_connections(1).connect(url).await?;
    let measurement = Stopwatch::begin()?;
    // It fetches no further jobs into its local queues when it runs once.
    if let BatchingMode::Single = completion {
        worker.run_once().await?;
        return measurement.print(number.into());
    }
    let drained = async {
        let waiting = "SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)";
        while sqlx::query_scalar(waiting).fetch_one(&pool).await? {
            tokio::time::sleep(POLL).await;
        }
        measurement.print(number.into())
    };
    tokio::select! {
        drained = drained => drained,
        ended = worker.run() => bail!("the worker ended: {ended:?}"),
    }
}
