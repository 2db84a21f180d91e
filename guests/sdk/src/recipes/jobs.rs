//! Jobs: work after the commit, in steps. A step that ends with
//! [`Outcome::Continue`](crate::Outcome::Continue) commits, and the next one
//! begins with the payload it left.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::{FakeHost, Request};
//! use area_sdk::JobOptions;
//! use serde_json::json;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Rebuild {
//!     done: u32,
//! }
//!
//! job!(Rebuild, "rebuild");
//!
//! fn start(ctx: &Ctx) -> Result<NoContent> {
//!     let tonight = ctx.now().plus_seconds(8 * 3600);
//!     let options = JobOptions {
//!         at: Some(tonight),
//!         // While one waits or runs, another one is not enqueued.
//!         dedupe_key: Some("rebuild".to_owned()),
//!         ..JobOptions::default()
//!     };
//!     ctx.enqueue_with(&Rebuild { done: 0 }, options);
//!     Ok(NoContent)
//! }
//!
//! fn rebuild(ctx: &JobCtx, job: Rebuild) -> JobResult<Rebuild> {
//!     area_sdk::info!(ctx, "step {} of 3", job.done + 1);
//!     if job.done < 2 { Ok(Outcome::Continue(Rebuild { done: job.done + 1 })) } else { Ok(Outcome::Done) }
//! }
//!
//! let area = Area::new("reports", "1.0.0")
//!     .job(Lane::Maintenance, 3, 10_000, rebuild) // at most 3 attempts, 10 s for each step
//!     .route(post("start", "/v1/workspaces/{workspace_id}/rebuild").handler(start));
//! let host = FakeHost::new(area);
//! host.call(Request::to("start")).unwrap();
//! host.call(Request::to("start")).unwrap();
//! assert_eq!(host.jobs().len(), 1);
//! let next = host.run("rebuild", json!({"done": 0}), 1).unwrap();
//! assert_eq!(next, area_sdk::wit::Outcome::Continue(r#"{"done":1}"#.into()));
//! ```
//!
//! Work that repeats enqueues its next run, with another `dedupe_key` than its
//! own, before it ends with `Done`. [`Outcome::Retry`](crate::Outcome::Retry)
//! is for a run that failed: it counts as an attempt.
