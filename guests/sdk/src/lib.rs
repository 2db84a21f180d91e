//! The crate that an area of the Workspace Assurance Service is written with.
//!
//! An area declares typed functions, one for each operation, and its collections, events and jobs.
//! The argument and return types of the functions also define the JSON Schemas with which the host
//! validates and documents requests:
//!
//! ```
//! use area_sdk::prelude::*;
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Note {
//!     text: String,
//! }
//! document!(Note, "notes");
//!
//! fn create(ctx: &Ctx, Body(note): Body<Note>) -> Result<Created<Note>> {
//!     ctx.documents::<Note>().create(ctx.new_id(), &note)?;
//!     Ok(Created(note))
//! }
//!
//! pub fn area() -> Area {
//!     Area::new("notes", env!("CARGO_PKG_VERSION"))
//!         .summary("Notes")
//!         .collection(Collection::of::<Note>())
//!         .route(post("create_note", "/v1/workspaces/{workspace_id}/notes").handler(create))
//! }
//! area_sdk::export!(area);
//! # fn main() {}
//! ```
//!
//! Every call gets a fresh instance and is one transaction: a handler that
//! returns an error leaves nothing behind, and any handler may be run again.
//! Handlers are plain functions; [`testing`] runs them natively. [`recipes`]
//! has an example for each capability.

mod area;
mod blobs;
mod context;
mod documents;
mod extract;
#[cfg(target_arch = "wasm32")]
pub mod glue;
mod host;
mod id;
mod job;
mod mail;
mod manifest;
mod membership;
mod paging;
mod patch;
mod problem;
pub mod queue;
pub mod recipes;
mod reply;
mod route;
mod schema;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod text;
mod time;
#[rustfmt::skip]
pub mod wit;

pub use area::Area;
pub use blobs::{BlobError, BlobInfo, Blobs, SharedBlobs};
pub use context::{Ctx, JobCtx, JobOptions, Level, Scope, Secrets};
pub use documents::{Document, DocumentError, Documents, Page, Query, Stored, Value};
pub use extract::{
    Blob, Body, Form, FromRequest, HandlerInput, LinkClaims, Params, Path, Verbatim,
};
#[cfg(not(target_arch = "wasm32"))]
pub use host::Host;
pub use host::HostFunctions;
pub use job::{Event, EventDelivery, Job, JobError, JobResult, MERGED_EVENTS, Outcome, Progress};
pub use mail::{MailError, Message};
pub use manifest::{Collection, Lane};
pub use membership::{Account, NoSuchUser};
pub use paging::Paging;
pub use patch::Patch;
pub use problem::{Problem, Violation};
pub use reply::{Created, IntoReply, NoContent, Replayable, Versioned};
pub use route::{Handler, Route, RouteBuilder, delete, get, patch, post, put};
pub use time::Timestamp;
pub use uuid::Uuid;
pub use wit::assurance::area::malware::{Error as ScanError, Verdict};
pub use wit::assurance::area::manifest::{Capability, LinkHolder, RateClass};
pub use wit::assurance::area::types::Role;

/// Result of a handler: a success, or the problem that the client receives.
pub type Result<T, E = Problem> = std::result::Result<T, E>;

/// The items that nearly every area imports.
pub mod prelude {
    pub use crate::{
        Area, Body, Capability, Collection, Created, Ctx, Document, Event, Job, JobCtx, JobResult,
        Lane, NoContent, Outcome, Page, Paging, Params, Patch, Path, Problem, Result, Role, Scope,
        Stored, Timestamp, Uuid, Versioned, delete, document, event, get, job, patch, post, put,
    };
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
}

/// Exports a function that returns an [`Area`] as the component. Does nothing on targets other than
/// wasm32.
#[macro_export]
macro_rules! export {
    ($area:path) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "the component's exports are foreign functions")]
        const _: () = {
            struct Component;
            impl $crate::wit::Guest for Component {
                fn describe() -> $crate::wit::Manifest {
                    $crate::glue::begin();
                    $crate::glue::leave_arena();
                    $area().manifest()
                }
                fn handle(
                    request: $crate::wit::Request,
                ) -> ::core::result::Result<$crate::wit::Reply, $crate::wit::Problem> {
                    $crate::glue::begin();
                    $area().handle($crate::HostFunctions, request)
                }
                fn run(
                    job: $crate::wit::Job,
                ) -> ::core::result::Result<$crate::wit::Outcome, $crate::wit::JobError> {
                    $crate::glue::begin();
                    $crate::glue::leave_arena();
                    $area().run($crate::HostFunctions, job)
                }
            }
            impl $crate::wit::exports::assurance::area::batches::Guest for Component {
                fn kinds() -> ::std::vec::Vec<$crate::wit::exports::assurance::area::batches::Batch>
                {
                    $crate::glue::begin();
                    $crate::glue::batches(&$area())
                }
                fn run(
                    jobs: ::std::vec::Vec<$crate::wit::Job>,
                ) -> ::core::result::Result<
                    ::std::vec::Vec<$crate::wit::Outcome>,
                    $crate::wit::JobError,
                > {
                    $crate::glue::begin();
                    $crate::glue::leave_arena();
                    $area().run_batch($crate::HostFunctions, jobs)
                }
            }
    $crate::wit::export_component!(Component with_types_in $crate::wit);
        };
    };
}
