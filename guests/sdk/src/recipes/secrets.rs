//! Secrets: the host stores a key of another service and uses it. An area can
//! never read it back. Needs the grant `secrets`.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::{hmac_sha256, FakeHost, Request};
//! use serde_json::json;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Credentials {
//!     /// `writeOnly` keeps it out of recordings.
//!     #[schemars(length(min = 16, max = 200), extend("writeOnly" = true))]
//!     signing_key: String,
//! }
//!
//! fn put_key(ctx: &Ctx, Body(given): Body<Credentials>) -> Result<NoContent> {
//!     ctx.secrets().put("signing-key", given.signing_key.as_bytes());
//!     Ok(NoContent)
//! }
//!
//! fn sign(ctx: &Ctx) -> Result<Vec<u8>> {
//!     let signature = ctx.secrets().hmac_sha256("signing-key", b"message");
//!     signature.ok_or_else(Problem::not_found)
//! }
//!
//! let area = Area::new("signer", "1.0.0")
//!     .uses(&[Capability::Secrets])
//!     .route(put("put_key", "/v1/workspaces/{workspace_id}/key").handler(put_key))
//!     .route(get("sign", "/v1/workspaces/{workspace_id}/signature").handler(sign));
//! let host = FakeHost::new(area);
//! let key = "0123456789abcdef";
//! host.call(Request::to("put_key").json(json!({"signing_key": key}))).unwrap();
//! let signature = host.call(Request::to("sign")).unwrap().body;
//! assert_eq!(signature, json!(hmac_sha256(key.as_bytes(), b"message")));
//! ```
//!
//! To send a secret as a bearer token, name it in a request: see
//! [`egress`](super::egress).
