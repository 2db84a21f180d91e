//! Digests, signatures and random bytes. [`Scope::new_id`](crate::Scope::new_id)
//! and [`Scope::random_below`](crate::Scope::random_below) need no capability,
//! but others can predict them: use random bytes for tokens.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::{FakeHost, Request};
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct StoredToken {
//!     sha256: String,
//! }
//!
//! document!(StoredToken, "tokens");
//!
//! /// Stores only the digest of the token that the client receives.
//! fn create(ctx: &Ctx) -> Result<Created<String>> {
//!     let token: String = ctx.random_bytes(16).iter().map(|byte| format!("{byte:02x}")).collect();
//!     let stored = StoredToken { sha256: ctx.sha256_hex(token.as_bytes()) };
//!     ctx.documents().create(ctx.new_id(), &stored)?;
//!     Ok(Created(token))
//! }
//!
//! let area = Area::new("tokens", "1.0.0")
//!     .uses(&[Capability::Crypto])
//!     .collection(Collection::of::<StoredToken>().unique(&["sha256"]))
//!     .route(post("create_token", "/v1/workspaces/{workspace_id}/tokens").handler(create));
//! let host = FakeHost::new(area);
//! let token = host.call(Request::to("create_token")).unwrap().body;
//! assert_eq!(token.as_str().unwrap().len(), 32);
//! assert_ne!(host.documents("tokens")[0]["sha256"], token);
//! ```
//!
//! [`Scope::ed25519_verify`](crate::Scope::ed25519_verify) verifies signatures.
