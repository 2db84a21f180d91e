//! Versions from the component folder: an area runs the version of its file,
//! unless an operator changed the area's live version after the file was
//! written.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::super::App;
use super::super::folder::{ComponentInstaller, RefusedFile};
use super::error::AreaActionError;
use super::follow::catch_up;
use super::install::install_unnamed;
use super::trust::{Signature, publisher_of};
use super::{load, rows, searched};
use crate::registry::AreaTargetState;
use assurance_core::domain::time::Timestamp;
use assurance_runtime::LoadedArea;
use assurance_store as store;

impl ComponentInstaller for App {
    type LoadedComponent = LoadedArea;
    type Error = AreaActionError;

    async fn load(
        &self,
        component: Arc<[u8]>,
        signature: Option<Vec<u8>>,
    ) -> Result<LoadedArea, AreaActionError> {
        let signature = signature.map(|text| Signature::read(&text)).transpose()?;
        let digest = hex::encode(Sha256::digest(&component));
        let publisher = publisher_of(&self.config, &digest, signature.as_ref())?;
        let loaded = load::component(self, component).await?;
        publisher.may_publish(&loaded.manifest.name)?;
        Ok(loaded)
    }

    fn area_of(loaded: &LoadedArea) -> &str {
        &loaded.manifest.name
    }

    async fn install(
        &self,
        loaded: LoadedArea,
        written_at: Timestamp,
    ) -> Result<String, AreaActionError> {
        let area = loaded.manifest.name.clone();
        let _one_at_a_time = self.installing.lock().await;
        let row = rows::area(self, &area).await?.desired.pointer;
        if row.is_some_and(|row| row.changed_at >= written_at) {
            tracing::info!(area.name = area, "file ignored: the deployed version is newer");
            return Ok(area);
        }
        let live = self.registry.snapshot();
        if live.running(&area).is_none_or(|live| live.digest != loaded.digest) {
            let version = load::compile(self, loaded).await?;
            let plan = self.registry.plan(&area, AreaTargetState::Live(&version))?;
            load::ensure_collections(self, &version).await?;
            if let Some(change) = install_unnamed(self, plan) {
                searched::complete_later(self, &change);
            }
        }
        // Only now: a refused file must not keep the deployed version from running.
        self.node.note_file(&area, written_at);
        self.node.recovered(&area);
        Ok(area)
    }

    fn is_temporary(error: &AreaActionError) -> bool {
        let (AreaActionError::Store(source) | AreaActionError::Indexes { source, .. }) = error
        else {
            return false;
        };
        match source {
            store::Error::UniqueConflict { .. } => false,
            store::Error::Unavailable(_) | store::Error::Full(_) => !source.is_timeout(),
            _ => source.is_write_conflict(),
        }
    }

    fn note_refused(&self, path: &Path, file: RefusedFile) {
        self.node.note_refused_file(path, file);
    }

    fn note_settled(&self, file: &Path) {
        self.node.forget_refused_file(file);
    }

    async fn remove(&self, area: &str) -> Result<(), AreaActionError> {
        if !self.node.forget_file(area) {
            return Ok(());
        }
        {
            let _one_at_a_time = self.installing.lock().await;
            install_unnamed(self, self.registry.plan(area, AreaTargetState::Removed)?);
        }
        // Returns to the version that operators deployed, if there is one.
        catch_up(self).await?;
        Ok(())
    }
}
