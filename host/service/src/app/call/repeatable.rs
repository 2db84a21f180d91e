//! An area request with clock and seed, shared by all attempts to execute it.

use super::{AreaRequest, CallRefusal};
use crate::app::App;
use crate::registry::AreaVersion;
use assurance_contract::CompiledRoute;
use assurance_core::domain::area::{CallContext, CallOrigin, Request, RequestBody};
use assurance_core::domain::id::SessionId;
use assurance_store::blobs::StoredBlob;
use assurance_work::{UnitOfWork, UnitOfWorkSpec};
use rand::RngExt as _;

/// A request to an area with its clock and seed. Every attempt, and the copy for a shadow version,
/// receives the same values.
#[derive(Clone, Debug)]
pub(crate) struct RepeatableRequest {
    pub(crate) request: Request,
    session: Option<SessionId>,
    stored: Option<StoredBlob>,
}

impl RepeatableRequest {
    /// Creates the request with the time of now and a random seed.
    pub(super) fn new(app: &App, route: &CompiledRoute, incoming: AreaRequest) -> Self {
        let request = Request {
            call: CallContext {
                workspace: incoming.workspace,
                now: app.clock.now(),
                seed: rand::rng().random(),
                origin: CallOrigin::Request(incoming.id),
            },
            user: incoming.caller.user,
            role: incoming.caller.role,
            operation: route.route.operation_id.clone(),
            parameters: incoming.parameters,
            body: incoming.body,
            idempotency_key: incoming.idempotency_key,
            if_match: incoming.if_match,
            base_url: app.base_url.clone(),
            link: incoming.link,
        };
        Self { request, session: incoming.caller.session, stored: incoming.stored }
    }

    /// Returns what the request's unit of work may do according to this version's route. The caller
    /// may add a lock or a isolation profile.
    pub(crate) fn spec(&self, area: &AreaVersion, route: &CompiledRoute) -> UnitOfWorkSpec {
        UnitOfWorkSpec {
            actor: Some(self.request.user),
            session: self.session,
            by_link: self.request.link.is_some(),
            writes: route.route.writes,
            ..UnitOfWorkSpec::of(&area.scope, self.request.call.clone())
        }
    }

    /// Makes the content of a body that was streamed to the blob store readable in the unit of
    /// work.
    pub(crate) fn attach_body(&self, unit: &mut UnitOfWork) -> Result<(), CallRefusal> {
        let (RequestBody::Blob(received), Some(stored)) = (&self.request.body, &self.stored) else {
            return Ok(());
        };
        unit.blob_attach(&received.name, stored.clone()).map_err(CallRefusal::host)
    }
}
