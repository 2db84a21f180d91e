//! Return types of handlers, and the status and response schema that they declare.

use schemars::JsonSchema;
use serde::Serialize;

use crate::schema;
use crate::wit::assurance::area::manifest::Route;
use crate::wit::assurance::area::types::Reply;

/// A success that a handler can return. Any serializable value with a schema becomes a 200 with
/// that value as the JSON body.
pub trait IntoReply {
    /// Converts a handler's success to the reply of the contract.
    fn into_reply(self) -> Reply;
    /// Adds the status and the response schema to the manifest's route.
    fn describe(route: &mut Route);
}

impl<T: Serialize + JsonSchema> IntoReply for T {
    fn into_reply(self) -> Reply {
        let body = serde_json::to_string(&self).expect("a response that JSON can express");
        Reply { body: Some(body), version: None, replayed: false }
    }

    fn describe(route: &mut Route) {
        route.response = Some(schema::published::<T>());
    }
}

/// A reply with status 201.
#[derive(Clone, Copy, Debug)]
pub struct Created<R>(pub R);

impl<R: IntoReply> IntoReply for Created<R> {
    fn into_reply(self) -> Reply {
        self.0.into_reply()
    }

    fn describe(route: &mut Route) {
        R::describe(route);
        route.success_status = 201;
    }
}

/// A reply with the resource's version in `ETag`, which clients send back in `If-Match`. For reads,
/// the host adds a digest of the body to the `ETag`; a request with that `ETag` in `If-None-Match`
/// gets 304 while the body is the same.
#[derive(Clone, Copy, Debug)]
pub struct Versioned<R>(pub R, pub u64);

impl<R: IntoReply> IntoReply for Versioned<R> {
    fn into_reply(self) -> Reply {
        Reply { version: Some(self.1), ..self.0.into_reply() }
    }

    fn describe(route: &mut Route) {
        R::describe(route);
        let response = route.response.take();
        route.response = response.map(|schema| schema::with(&schema, "x-versioned", true.into()));
    }
}

/// A reply of an area that keeps its own idempotency records. The second value is true if the reply
/// repeats an earlier result.
#[derive(Clone, Copy, Debug)]
pub struct Replayable<R>(pub R, pub bool);

impl<R: IntoReply> IntoReply for Replayable<R> {
    fn into_reply(self) -> Reply {
        Reply { replayed: self.1, ..self.0.into_reply() }
    }

    fn describe(route: &mut Route) {
        R::describe(route);
    }
}

/// A reply with status 204 and no body.
#[derive(Clone, Copy, Debug)]
pub struct NoContent;

impl IntoReply for NoContent {
    fn into_reply(self) -> Reply {
        Reply { body: None, version: None, replayed: false }
    }

    fn describe(route: &mut Route) {
        route.success_status = 204;
        route.response = None;
    }
}
