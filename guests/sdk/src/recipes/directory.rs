//! The people of the workspace.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::{FakeHost, Request, USER};
//! use serde_json::json;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Assignment {
//!     assignee_id: Uuid,
//! }
//!
//! /// Accepts only members as assignees.
//! fn assign(ctx: &Ctx, Body(wanted): Body<Assignment>) -> Result<String> {
//!     let member = ctx.member(wanted.assignee_id);
//!     let member = member.ok_or_else(|| Problem::validation("/assignee_id", "is not a member"))?;
//!     Ok(member.display_name)
//! }
//!
//! let area = Area::new("tasks", "1.0.0")
//!     .uses(&[Capability::Directory])
//!     .route(post("assign", "/v1/workspaces/{workspace_id}/assignment").handler(assign));
//! let host = FakeHost::new(area);
//! let request = || Request::to("assign").json(json!({"assignee_id": USER}));
//! assert_eq!(host.call(request()).unwrap_err().violations[0].pointer, "/assignee_id");
//! host.put_member(USER, "ada@example.com", Role::Member);
//! assert_eq!(host.call(request()).unwrap().body, json!("ada@example.com"));
//! ```
