//! Settings of an area in the operator's configuration,
//! `[areas.settings.NAME]`. They are not secret.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::{FakeHost, Request};
//! use serde_json::json;
//!
//! fn limit(ctx: &Ctx) -> Result<u32> {
//!     let limit = ctx.setting("max_reports").and_then(|limit| limit.parse().ok());
//!     Ok(limit.unwrap_or(100))
//! }
//!
//! let area = Area::new("reports", "1.0.0")
//!     .uses(&[Capability::Settings])
//!     .route(get("report_limit", "/v1/workspaces/{workspace_id}/limit").handler(limit));
//! let host = FakeHost::new(area);
//! assert_eq!(host.call(Request::to("report_limit")).unwrap().body, json!(100));
//! host.set("max_reports", "7");
//! assert_eq!(host.call(Request::to("report_limit")).unwrap().body, json!(7));
//! ```
