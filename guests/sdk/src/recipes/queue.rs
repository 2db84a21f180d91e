//! The workspace's jobs, of all areas. Needs the grant `queue`. An area does not
//! need it for its own jobs.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::queue::{Job, Status};
//! use area_sdk::testing::{FakeHost, Request};
//! use serde_json::json;
//!
//! /// Returns the ids of jobs that have no attempt left.
//! fn dead(ctx: &Ctx) -> Result<Vec<String>> {
//!     let jobs = ctx.queue().overview(100);
//!     let jobs = jobs.map_err(|error| Problem::unavailable(format!("{error:?}")))?;
//!     let dead = jobs.into_iter().filter(|job| job.status == Status::Dead);
//!     Ok(dead.map(|job| job.id).collect())
//! }
//!
//! let area = Area::new("operations", "1.0.0")
//!     .uses(&[Capability::Queue])
//!     .route(get("list_dead", "/v1/workspaces/{workspace_id}/dead-jobs").handler(dead));
//! let host = FakeHost::new(area);
//! host.put_job(Job {
//!     id: Uuid::nil().to_string(),
//!     kind: "import".into(),
//!     lane: "ingest".into(),
//!     status: Status::Dead,
//!     # area: "uploads".into(),
//!     # position: None,
//!     # attempts: 3,
//!     # max_attempts: 3,
//!     # created_at: 0,
//!     # available_at: 0,
//!     # updated_at: 0,
//!     # resource: None,
//!     last_error: Some("it has no header".into()),
//! });
//! let dead = host.call(Request::to("list_dead")).unwrap().body;
//! assert_eq!(dead, json!([Uuid::nil()]));
//! ```
