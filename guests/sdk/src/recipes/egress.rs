//! HTTP requests to other services. Only jobs may send, to public addresses by
//! https. Needs the grant `egress`. An attempt that fails after it has sent
//! sends again: give the other service an idempotency key, such as the job's id.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::JobError;
//! use area_sdk::testing::FakeHost;
//! use area_sdk::wit::assurance::area::egress::{Header, Incoming, Outgoing};
//! use serde_json::json;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Notify {
//!     url: String,
//! }
//!
//! job!(Notify, "notify");
//!
//! fn notify(ctx: &JobCtx, job: Notify) -> JobResult<Notify> {
//!     let key = Header { name: "idempotency-key".into(), value: ctx.job_id().to_string() };
//!     let response = ctx.send(&Outgoing {
//!         method: "POST".into(),
//!         url: job.url,
//!         headers: vec![key],
//!         body: b"{}".to_vec(),
//!         bearer: Some("api-token".into()), // the host adds this secret
//!         timeout_ms: 5_000,
//!         max_response_bytes: 65_536,
//!     });
//!     match response.map_err(|error| JobError::Retry(format!("{error:?}")))?.status {
//!         200..=299 => Ok(Outcome::Done),
//!         429 | 500..=599 => Err(JobError::Retry("the service is busy".into())),
//!         status => Err(JobError::Fail(format!("the service returned {status}"))),
//!     }
//! }
//!
//! let area = Area::new("notifier", "1.0.0")
//!     .uses(&[Capability::Egress])
//!     .job(Lane::Delivery, 5, 10_000, notify);
//! let host = FakeHost::new(area);
//! host.network(|_| Ok(Incoming { status: 503, headers: vec![], body: vec![] }));
//! let busy = host.run("notify", json!({"url": "https://example.com/hook"}), 1);
//! assert_eq!(busy, Err(JobError::Retry("the service is busy".into())));
//! assert_eq!(host.sent()[0].bearer.as_deref(), Some("api-token"));
//! ```
