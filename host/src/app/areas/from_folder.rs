//! The folder as a source: what its files say answers here, unless an
//! operator has moved the area's pointer since the file was written.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::super::App;
use super::super::folder::Host;
use super::trust::{Signature, who_vouches};
use super::{InstallError, announce, catch_up, ensure_indexes, load, ready};
use crate::domain::time::Timestamp;
use crate::runtime::Loaded;
use crate::store::deployments;

impl Host for App {
    type Loaded = Loaded;
    type LoadError = InstallError;
    type InstallError = InstallError;

    async fn load(
        &self,
        component: Arc<[u8]>,
        signature: Option<Vec<u8>>,
    ) -> Result<Loaded, InstallError> {
        let signature = signature.map(|text| Signature::read(&text)).transpose()?;
        let digest = hex::encode(Sha256::digest(&component));
        let vouched = who_vouches(&self.config, &digest, signature.as_ref())?;
        let loaded = load(self, component).await?;
        vouched.covers(&loaded.manifest.name)?;
        Ok(loaded)
    }

    async fn install(&self, loaded: Loaded, written_at: Timestamp) -> Result<String, InstallError> {
        let area = loaded.manifest.name.clone();
        let _one_at_a_time = self.installing.lock().await;
        if is_outdated(self, &area, written_at).await? {
            tracing::info!(area.name = area, "what operators deployed is newer than the file");
            return Ok(area);
        }
        self.node.answers_from_file(&area, written_at);
        self.node.recovered(&area);
        let live = self.registry.snapshot();
        if live.running(&area).is_some_and(|live| live.digest == loaded.digest) {
            return Ok(area);
        }
        let plan = ready::plan(self, loaded).await?;
        if let Some(now) = &plan.change().now {
            ensure_indexes(self, now).await?;
        }
        if let Some(change) = self.registry.activate(plan) {
            announce(self, &change);
        }
        Ok(area)
    }

    fn note_refused(&self, file: &Path, why: &str) {
        self.node.note_refused_file(file, why.to_owned());
    }

    fn note_settled(&self, file: &Path) {
        self.node.forget_refused_file(file);
    }

    async fn remove(&self, area: &str) -> Result<(), InstallError> {
        if !self.node.forget_file(area) {
            return Ok(());
        }
        take_out(self, area).await?;
        // What operators deployed answers again.
        catch_up(self).await?;
        Ok(())
    }
}

async fn is_outdated(app: &App, area: &str, written_at: Timestamp) -> Result<bool, InstallError> {
    let mut connection = app.store.reader().await?;
    let pointer = deployments::pointer_of(&mut connection, area).await?;
    connection.release();
    Ok(pointer.is_some_and(|pointer| pointer.changed_at >= written_at))
}

async fn take_out(app: &App, area: &str) -> Result<(), InstallError> {
    let _one_at_a_time = app.installing.lock().await;
    let plan = app.registry.plan_removal(area)?;
    if let Some(change) = app.registry.activate(plan) {
        announce(app, &change);
    }
    Ok(())
}
