//! Installs the manifests of live versions whose code this node has not loaded.
//! With the manifest from the database, their routes return 503 instead of 404,
//! their events keep their subscribers, other areas can read their documents,
//! and OpenAPI contains their operations.

use std::sync::Arc;

use super::super::App;
use super::error::AreaActionError;
use super::install::install_unnamed;
use super::{load, rows};
use crate::registry::AreaTargetState;
use assurance_core::domain::deployment::LivePointer;
use assurance_runtime::LoadedArea;
use assurance_work::AreaCode;

/// Stands in for the code of a live version that this node has not loaded. It
/// is never called, because its area returns 503.
struct CodePlaceholder;

impl AreaCode for CodePlaceholder {
    fn is_loaded(&self) -> bool {
        false
    }
}

/// Installs the manifest of a live version, unless the area's code is loaded.
/// Without its manifest, the node cannot know whether an unknown path is a route
/// of that version.
pub(super) async fn install_unloaded(app: &App, pointer: &LivePointer) {
    if let Err(error) = try_install(app, pointer).await {
        let area = &pointer.area;
        tracing::error!(area.name = area, %error, "cannot install a live version's manifest");
    }
}

async fn try_install(app: &App, pointer: &LivePointer) -> Result<(), AreaActionError> {
    let Some(digest) = &pointer.digest else { return Ok(()) };
    let unknown = || AreaActionError::not_known(&pointer.area, digest);
    let manifest = rows::manifest(app, &pointer.area, digest).await?.ok_or_else(unknown)?;
    let _one_at_a_time = app.installing.lock().await;
    let live = app.registry.snapshot();
    if live.area(&pointer.area).is_some_and(|now| now.is_loaded() || now.digest == *digest) {
        return Ok(());
    }
    let loaded = LoadedArea {
        manifest,
        digest: digest.clone(),
        code: Arc::new(CodePlaceholder),
        generation: "",
        imports: Vec::new(),
        compiled_in: None,
    };
    let version = load::compile(app, loaded).await?;
    install_unnamed(app, app.registry.plan(&pointer.area, AreaTargetState::Live(&version))?);
    Ok(())
}
