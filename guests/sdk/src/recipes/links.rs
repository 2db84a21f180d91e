//! Signed links: whoever has the token may call one operation until it expires.
//! The host verifies the token and gives the handler its claims.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::{FakeHost, Request};
//! use area_sdk::{LinkClaims, LinkHolder};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Claims {
//!     report_id: Uuid,
//! }
//!
//! fn share(ctx: &Ctx) -> Result<String> {
//!     let claims = Claims { report_id: ctx.new_id() };
//!     let token = ctx.sign_link("read_report", &claims, ctx.now().plus_seconds(3600));
//!     Ok(format!("{}/v1/reports?token={token}", ctx.base_url()))
//! }
//!
//! fn read(_: &Ctx, LinkClaims(claims): LinkClaims<Claims>) -> Result<Uuid> {
//!     Ok(claims.report_id)
//! }
//!
//! let area = Area::new("reports", "1.0.0")
//!     .uses(&[Capability::Links])
//!     .route(post("share_report", "/v1/workspaces/{workspace_id}/share").handler(share))
//!     .route(
//!         get("read_report", "/v1/reports")
//!             .signed_link("token", LinkHolder::Bearer)
//!             .handler(read),
//!     );
//! let host = FakeHost::new(area);
//! host.call(Request::to("share_report")).unwrap();
//! let link = host.links().remove(0);
//! let read = host.call(Request::to("read_report").link(link.claims.clone())).unwrap();
//! assert_eq!(read.body, link.claims["report_id"]);
//! ```
//!
//! Everybody who has the token can read its claims. If a link may be used only
//! once, store its use. A job has no session, so it can sign only links for
//! [`LinkHolder::SignedIn`](crate::LinkHolder::SignedIn).
