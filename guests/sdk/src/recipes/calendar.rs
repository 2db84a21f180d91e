//! Local times, with the host's copy of the IANA time zone database.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::{FakeHost, Request};
//! use serde_json::json;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Zone {
//!     #[schemars(length(min = 1, max = 64))]
//!     zone: String,
//! }
//!
//! /// Returns the start of today in a zone.
//! fn today(ctx: &Ctx, Params(given): Params<Zone>) -> Result<Timestamp> {
//!     let unknown = |_| Problem::validation("zone", "is not an IANA time zone");
//!     let mut local = ctx.local(&given.zone, ctx.now()).map_err(unknown)?;
//!     (local.hour, local.minute, local.second) = (0, 0, 0);
//!     ctx.resolve(&given.zone, local).map_err(unknown)
//! }
//!
//! let area = Area::new("days", "1.0.0")
//!     .uses(&[Capability::Calendar])
//!     .route(get("today", "/v1/workspaces/{workspace_id}/today").handler(today));
//! let host = FakeHost::new(area); // its clock begins at 2026-09-21T14:13:20Z
//! let berlin = host.call(Request::to("today").with("zone", "Europe/Berlin")).unwrap().body;
//! assert_eq!(berlin, json!("2026-09-20T22:00:00.000000Z"));
//! assert!(host.call(Request::to("today").with("zone", "Mars/Olympus")).is_err());
//! ```
