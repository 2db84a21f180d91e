//! Cost of the sandbox itself: `cargo bench -p assurance-runtime --bench
//! runtime`.
//!
//! Medians over batches, in nanoseconds of processor time, which other programs
//! affect less than elapsed time. No storage is used.

#![allow(clippy::unwrap_used, reason = "a benchmark")]

#[path = "../tests/sandbox/mod.rs"]
mod sandbox;

use std::sync::Arc;
use std::time::{Duration, Instant};

use assurance_runtime::{LoadedArea, Settings};
use rustix::time::{ClockId, clock_gettime};
use sandbox::{Sandbox, body};

const BATCHES: usize = 41;
const CALLS: u32 = 500;
const HOST_CALLS: f64 = 100.0;

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let sandbox = Arc::new(Sandbox::new(Settings::default()).await);
    let echo = sandbox.load("echo").await.unwrap();
    let hello = sandbox.load("hello").await.unwrap();
    let unit = unit_of_work(&sandbox).await;
    let plain = call(&sandbox, &echo, "hello", "{}").await;
    let typed = call(&sandbox, &hello, "say_hello", r#"{"name":"you"}"#).await;
    let hashing = call(&sandbox, &echo, "hash", "{}").await;
    println!("unit of work                        {unit:>8.0} ns");
    println!("instantiate + call, bare guest      {plain:>8.0} ns");
    println!("instantiate + call, SDK guest, JSON {typed:>8.0} ns");
    println!("one host call (sha256)              {:>8.0} ns", (hashing - plain) / HOST_CALLS);
    let rate = both_threads(sandbox, hello).await;
    println!("SDK guest, two threads              {rate:>8.0} calls/s");
}

async fn unit_of_work(sandbox: &Sandbox) -> f64 {
    median(|| async {
        std::hint::black_box(sandbox.unit("echo", false));
    })
    .await
}

async fn call(sandbox: &Sandbox, loaded: &LoadedArea, operation: &str, json: &str) -> f64 {
    median(|| async {
        body(sandbox.handle(loaded, operation, json, 1000).await.result);
    })
    .await
}

/// Returns the nanoseconds of one operation, the median of many batches.
async fn median<F: Future<Output = ()>>(one: impl Fn() -> F) -> f64 {
    let mut batches = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let begun_ns = processor_ns();
        for _ in 0..CALLS {
            one().await;
        }
        batches.push((processor_ns() - begun_ns) / f64::from(CALLS));
    }
    batches.sort_by(f64::total_cmp);
    batches[BATCHES / 2]
}

/// Returns the processor time of this process, in nanoseconds.
fn processor_ns() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

async fn both_threads(sandbox: Arc<Sandbox>, loaded: LoadedArea) -> f64 {
    let begun = Instant::now();
    let work = |_| {
        let (sandbox, loaded) = (sandbox.clone(), loaded.clone());
        tokio::spawn(async move {
            let mut calls = 0.0;
            while begun.elapsed() < Duration::from_secs(3) {
                let ended = sandbox.handle(&loaded, "say_hello", r#"{"name":"you"}"#, 1000).await;
                body(ended.result);
                calls += 1.0;
            }
            calls
        })
    };
    let tasks: Vec<_> = (0..2).map(work).collect();
    let mut calls = 0.0;
    for task in tasks {
        calls += task.await.unwrap();
    }
    calls / begun.elapsed().as_secs_f64()
}
