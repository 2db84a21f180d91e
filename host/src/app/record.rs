//! Which requests are written down, and what of them may not be.

use std::sync::Arc;

use serde_json::Value as Json;

use super::App;
use super::call::Incoming;
use crate::domain::area::Body;
use crate::domain::manifest::Capability;
use crate::recordings::{About, Export, Recorder, Recordings, Sealed};
use crate::registry::{AreaVersion, RouteContract};

/// A request that is written down.
pub(super) struct Written {
    pub(super) recorder: Arc<Recorder>,
    recordings: Recordings,
    /// It is kept however it ends.
    picked: bool,
}

impl Written {
    /// Begins, where the operator wants recordings that this can be one of.
    pub(super) fn begin(
        app: &App,
        area: &AreaVersion,
        route: &RouteContract,
        incoming: &Incoming,
        request_id: &str,
    ) -> Option<Self> {
        let recordings = &app.recordings;
        let picked = recordings.picks();
        if !picked && !recordings.keeps_faults() {
            return None;
        }
        let about = About {
            id: request_id.to_owned(),
            at: app.clock.now(),
            area: area.scope.area.clone(),
            version: area.scope.version.clone(),
            digest: area.digest.clone(),
            export: Export::Handle,
            operation: route.route.operation_id.clone(),
            checked: app.config.development,
        };
        let recorder = recordings.begin(about, sealed(area, route, incoming));
        Some(Self { recorder, recordings: recordings.clone(), picked })
    }

    /// The call has ended.
    pub(super) fn keep(self) {
        self.recordings.keep(&self.recorder, self.picked);
    }
}

/// Why nothing of a request may be kept that it brought.
fn sealed(area: &AreaVersion, route: &RouteContract, incoming: &Incoming) -> Option<Sealed> {
    if incoming.link.is_some() {
        return Some(Sealed::ByLink);
    }
    if route.body_schema.as_ref().is_some_and(takes_a_secret) {
        return Some(Sealed::Marked);
    }
    let keeps_secrets = area.manifest.capabilities.contains(&Capability::Secrets);
    let brings = route.route.writes && incoming.body != Body::None;
    (keeps_secrets && brings).then_some(Sealed::MayCarry)
}

/// Whether a schema has a member that is never shown again.
fn takes_a_secret(schema: &Json) -> bool {
    match schema {
        Json::Object(members) => {
            members.get("writeOnly") == Some(&Json::Bool(true))
                || members.values().any(takes_a_secret)
        }
        Json::Array(items) => items.iter().any(takes_a_secret),
        _ => false,
    }
}
