//! Mail to people. Only jobs may send. Needs the grant `mail`. Enqueue the job
//! in the handler, so that nothing is sent for a request that fails.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::FakeHost;
//! use area_sdk::{JobError, MailError, Message};
//! use serde_json::json;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Letter {
//!     to: String,
//! }
//!
//! job!(Letter, "letter");
//!
//! fn send(ctx: &JobCtx, letter: Letter) -> JobResult<Letter> {
//!     let message = Message {
//!         to: letter.to,
//!         subject: "Your report is ready".into(),
//!         text: "It is at https://assurance.example/reports.".into(),
//!     };
//!     match ctx.send_mail(&message) {
//!         Ok(()) => Ok(Outcome::Done),
//!         Err(MailError::Unavailable(why)) => Err(JobError::Retry(why)),
//!         Err(error) => Err(JobError::Fail(format!("{error:?}"))),
//!     }
//! }
//!
//! let area = Area::new("letters", "1.0.0")
//!     .uses(&[Capability::Mail])
//!     .job(Lane::Delivery, 5, 30_000, send);
//! let host = FakeHost::new(area);
//! host.run("letter", json!({"to": "ada@example.com"}), 1).unwrap();
//! assert_eq!(host.mail()[0].subject, "Your report is ready");
//! ```
