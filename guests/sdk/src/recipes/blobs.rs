//! Blobs: content too large for a document, by name. A route with a [`Blob`](crate::Blob)
//! argument receives any body; the host streams it into the blob store before
//! the handler runs.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::{FakeHost, Request};
//! use area_sdk::Blob;
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Report {
//!     size: u64,
//!     sha256: String,
//!     first_line: String,
//! }
//!
//! fn put_report(ctx: &Ctx, Blob(received): Blob) -> Result<Report> {
//!     let start = ctx.blobs().read(&received.name, 0, 4096);
//!     let start = start.map_err(|_| Problem::unavailable("The content cannot be read."))?;
//!     let text = String::from_utf8_lossy(&start);
//!     let first_line = text.lines().next().unwrap_or_default().to_owned();
//!     ctx.blobs()
//!         .write("latest", first_line.as_bytes())
//!         .map_err(|_| Problem::unavailable("The blob store does not respond."))?;
//!     Ok(Report { size: received.size, sha256: received.sha256, first_line })
//! }
//!
//! let path = "/v1/workspaces/{workspace_id}/report";
//! let area = Area::new("reports", "1.0.0")
//!     .uses(&[Capability::Blobs])
//!     .route(put("put_report", path).handler(put_report));
//! let host = FakeHost::new(area);
//! let content = host.put_blob("received/1", b"total: 3\nrest");
//! let report = host.call(Request::to("put_report").blob(content)).unwrap().body;
//! assert_eq!((&report["size"], &report["first_line"]), (&13.into(), &"total: 3".into()));
//! assert!(host.blobs().contains(&"latest".to_owned()));
//! ```
//!
//! [`Blobs::read_all`](crate::Blobs::read_all) reads a whole blob up to a
//! limit. Another area reads blobs with
//! [`Scope::shared_blobs`](crate::Scope::shared_blobs) if
//! [`Area::blobs_readable_by`](crate::Area::blobs_readable_by) names it.
