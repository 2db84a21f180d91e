//! Decides which requests are recorded, and which of them may not be recorded
//! in full.

use std::sync::Arc;

use serde_json::Value as Json;

use super::App;
use super::call::AreaRequest;
use crate::registry::AreaVersion;
use assurance_contract::CompiledRoute;
use assurance_core::domain::area::RequestBody;
use assurance_core::domain::manifest::Capability;
use assurance_core::recordings::{CallMetadata, ExportKind, InputRedactionReason, Recorder};

/// Recording of one request to an area while it is executed.
pub(super) struct RequestRecording {
    pub(super) recorder: Arc<Recorder>,
    /// Whether the recording is stored even if the request succeeds.
    pub(super) picked: bool,
}

impl RequestRecording {
    /// Starts the recording of a request. Returns `None` if the request is not sampled and faults
    /// are not recorded.
    pub(super) fn begin(
        app: &App,
        area: &AreaVersion,
        route: &CompiledRoute,
        request: &AreaRequest,
    ) -> Option<Self> {
        let recordings = &app.recordings;
        let picked = recordings.is_sampled();
        if !picked && !recordings.keeps_faults() {
            return None;
        }
        let about = CallMetadata {
            id: request.id.to_string(),
            at: app.clock.now(),
            area: area.scope.area.clone(),
            version: area.scope.version.clone(),
            digest: area.digest.clone(),
            export: ExportKind::Handle,
            operation: route.route.operation_id.clone(),
            checked: app.config.development,
        };
        let recorder = recordings.begin(about, not_replayable(area, route, request));
        Some(Self { recorder, picked })
    }
}

/// Returns why the request's parameters and body must not be recorded; `None` if they may.
fn not_replayable(
    area: &AreaVersion,
    route: &CompiledRoute,
    request: &AreaRequest,
) -> Option<InputRedactionReason> {
    if request.link.is_some() {
        return Some(InputRedactionReason::SignedLink);
    }
    if route.body.as_ref().is_some_and(|body| takes_a_secret(body.schema())) {
        return Some(InputRedactionReason::WriteOnlyMember);
    }
    let keeps_secrets = area.manifest.capabilities.contains(&Capability::Secrets);
    let brings = route.route.writes && request.body != RequestBody::None;
    (keeps_secrets && brings).then_some(InputRedactionReason::SecretInBody)
}

/// Whether a request schema has a `writeOnly` member, so that the body contains a secret.
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
