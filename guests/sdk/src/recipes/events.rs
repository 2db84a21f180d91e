//! Events: what an area publishes commits with its writes. Subscribers receive
//! it at least once, so a subscriber writes under the event's id.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::{FakeHost, Request};
//! use area_sdk::EventDelivery;
//! use serde_json::json;
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct ReportReady {
//!     report_id: Uuid,
//! }
//!
//! event!(ReportReady, "report.ready");
//!
//! fn finish(ctx: &Ctx) -> Result<NoContent> {
//!     ctx.publish(ReportReady { report_id: ctx.new_id() });
//!     Ok(NoContent)
//! }
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Seen {
//!     report_id: Uuid,
//! }
//!
//! document!(Seen, "seen");
//!
//! /// A delivery of the same event again changes nothing.
//! fn note(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
//!     let ready: ReportReady = event.data()?;
//!     if ctx.documents::<Seen>().find(event.id)?.is_none() {
//!         ctx.documents().create(event.id, &Seen { report_id: ready.report_id })?;
//!     }
//!     Ok(Outcome::Done)
//! }
//!
//! let area = Area::new("reports", "1.0.0")
//!     .event::<ReportReady>("A report is ready")
//!     .collection(Collection::of::<Seen>())
//!     .on("report.ready", note)
//!     .route(post("finish", "/v1/workspaces/{workspace_id}/finish").handler(finish));
//! let host = FakeHost::new(area);
//! host.call(Request::to("finish")).unwrap();
//! let event = host.events().remove(0);
//! for _ in 0..2 {
//!     host.deliver(event.id, &event.name, event.data.clone()).unwrap();
//! }
//! assert_eq!(host.documents("seen"), [event.data]);
//! ```
