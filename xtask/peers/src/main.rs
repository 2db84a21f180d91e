//! What another queue, and databases without a service, do on this machine. `cargo xtask bench
//! --writes` runs it next to the service:
//!
//! - `posts`: the rows of a POST, with its indexes and durability, and nothing else.
//! - `jobs`: rows claimed and deleted 64 at a time: a floor, not a queue.
//! - `graphile`, `graphile-single`: empty jobs of graphile_worker on PostgreSQL.
//!
//! Each run prints one line of JSON: how many, in which time, at which cost.

mod graphile;
mod jobs;
mod posts;

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::json;

/// Interval at which a queue is read until it is empty.
const POLL: Duration = Duration::from_millis(20);

#[tokio::main(worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, url, number, rest @ ..] = arguments.as_slice() else {
        bail!("usage: peers WHAT DATABASE-URL NUMBER [NUMBER]");
    };
    let number: u32 = number.parse().context("the third argument is no number")?;
    match what.as_str() {
        "posts" => {
            let per_commit = rest.first().map_or(Ok(1), |text| text.parse())?;
            posts::run(url, Duration::from_secs(number.into()), per_commit).await
        }
        "jobs-fill" => jobs::fill(url, number).await,
        "jobs" => jobs::run(url, number).await,
        "graphile-fill" => graphile::fill(url, number).await,
        "graphile" => graphile::run(url, number, graphile::BatchingMode::Together).await,
        "graphile-single" => graphile::run(url, number, graphile::BatchingMode::Single).await,
        other => bail!("unknown: {other}"),
    }
}

/// Measures wall-clock time and processor time from its creation on.
struct Stopwatch {
    begun: Instant,
    cpu_us: u64,
}

impl Stopwatch {
    fn begin() -> anyhow::Result<Self> {
        Ok(Self { begun: Instant::now(), cpu_us: cpu_us()? })
    }

    /// Prints the result.
    fn print(&self, count: u64) -> anyhow::Result<()> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let cpu_us = cpu_us()? - self.cpu_us;
        println!("{}", json!({ "count": count, "seconds": seconds, "cpu_us": cpu_us }));
        Ok(())
    }
}

/// Returns this process's processor time so far, in microseconds (proc(5), fields 14 and 15, in
/// ticks of 10 ms).
fn cpu_us() -> anyhow::Result<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(") ").context("odd line in /proc/self/stat")?.1;
    let ticks = fields.split(' ').skip(11).take(2).filter_map(|text| text.parse::<u64>().ok());
    Ok(ticks.sum::<u64>() * 10_000)
}
