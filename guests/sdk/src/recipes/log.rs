//! Log lines for operators: `assurance area logs NAME` prints them. Every area
//! may log. A panic is logged by itself, with its place in the code.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::{FakeHost, Request};
//!
//! fn import(ctx: &Ctx) -> Result<NoContent> {
//!     area_sdk::info!(ctx, "{} records imported", 3);
//!     area_sdk::warn!(ctx, "a record has no date");
//!     Ok(NoContent)
//! }
//!
//! let area = Area::new("imports", "1.0.0")
//!     .route(post("import", "/v1/workspaces/{workspace_id}/import").handler(import));
//! let host = FakeHost::new(area);
//! host.call(Request::to("import")).unwrap();
//! let lines = host.log_lines();
//! assert!(lines[0].ends_with("Info: 3 records imported"));
//! assert!(lines[1].ends_with("Warn: a record has no date"));
//! ```
//!
//! Do not log secrets or what clients sent. A call logs at most 200 lines
//! (`runtime.max_log_lines`).
