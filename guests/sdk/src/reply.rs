//! What handlers return, and what it says of the route.

use schemars::JsonSchema;
use serde::Serialize;

use crate::schema;
use crate::wit::assurance::area::manifest::Route;
use crate::wit::assurance::area::types::Reply;

/// A success: its reply, and the status and schema it gives the route. Any
/// serialisable value with a schema is a 200 with that body.
pub trait IntoReply {
    /// The reply.
    fn into_reply(self) -> Reply;
    /// Writes status and response schema into the manifest's route.
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

/// 201.
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

/// A body and the resource's version, sent as `ETag` and expected back in
/// `If-Match`. To a read the host adds a digest of the body: who sends that in
/// `If-None-Match` gets 304 while the body is the same.
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

/// A body, and whether it is an earlier call's answer, of an area that keeps
/// its own idempotency record.
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

/// 204.
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
