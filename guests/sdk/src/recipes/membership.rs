//! Members: an area that invites people adds them. Needs the grant
//! `membership`.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::{FakeHost, Request, USER};
//! use serde_json::json;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Invitee {
//!     #[schemars(length(max = 254))]
//!     email: String,
//! }
//!
//! fn add(ctx: &Ctx, Body(invitee): Body<Invitee>) -> Result<Uuid> {
//!     let account = ctx.account(&invitee.email).ok_or_else(Problem::not_found)?;
//!     let user: Uuid = account.user.parse().expect("a UUID of the host");
//!     ctx.add_member(user, Role::Member).map_err(|_| Problem::not_found())?;
//!     Ok(user)
//! }
//!
//! let area = Area::new("people", "1.0.0").uses(&[Capability::Membership]).route(
//!     post("add_person", "/v1/workspaces/{workspace_id}/people")
//!         .role(Role::Admin)
//!         .handler(add),
//! );
//! let host = FakeHost::new(area);
//! host.put_account(USER, "ada@example.com");
//! let request = || Request::to("add_person").json(json!({"email": "ada@example.com"}));
//! assert!(host.call(request().role(Role::Member)).is_err(), "only administrators add people");
//! host.call(request()).unwrap();
//! assert_eq!(host.members()[0].role, Role::Member);
//! ```
//!
//! [`Scope::vouch`](crate::Scope::vouch) lets somebody without an account
//! create one.
