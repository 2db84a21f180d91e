//! An operator brings a version: received, verified, compiled, checked, kept,
//! and put into service where that is wished. Nothing has changed where it
//! fails; the audit log says so either way.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::super::App;
use super::checks::{self, Checked};
use super::follow::Candidate;
use super::rehearsal::rehearse;
use super::switch::{self, Activation};
use super::trail::Trail;
use super::trials::{TrialWish, begin_trial};
use super::trust::{self, Signature};
use super::{InstallError, compiled, load, ready};
use crate::domain::deployment::{Deployment, Stage, Step};
use crate::domain::id::WorkspaceId;
use crate::domain::manifest::Manifest;
use crate::domain::trial::{Mode, Share, Trial};
use crate::registry::compatibility::Report;
use crate::registry::{AreaVersion, Change};
use crate::runtime::{LoadError, Loaded};
use crate::store::{Access, deployments};

/// What an operator brings.
#[derive(Clone, Debug)]
pub struct Received {
    /// As the operator calls it.
    pub area: String,
    /// The component.
    pub component: Bytes,
    /// Who vouches for it.
    pub signature: Option<Signature>,
    /// What is done with it once it is kept.
    pub then: Then,
    /// Why it is taken although it breaks clients.
    pub force: Option<String>,
}

/// What is done with a version that passed the checks.
#[derive(Clone, Debug)]
pub enum Then {
    /// It waits.
    Wait,
    /// It answers at once.
    Activate,
    /// It is tried so: for a share, and these workspaces.
    Try(Mode, Share, BTreeSet<WorkspaceId>),
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct Deployed {
    /// Names it from now on.
    pub digest: String,
    /// What is different from the live version.
    pub report: Report,
    /// Where it is.
    pub came_to: CameTo,
}

/// Where a version that was taken in is.
#[derive(Clone, Debug)]
pub enum CameTo {
    /// It answered already.
    Unchanged,
    /// It is kept, and waits to be activated.
    Staged,
    /// It answers from now on.
    Live(Change),
    /// It is tried beside the live one.
    OnTrial(Trial),
}

/// Takes a version in, and lets it answer where that is wished.
///
/// # Errors
/// Every way in which a version can be refused.
pub async fn deploy(app: &App, who: &str, received: Received) -> Result<Deployed, InstallError> {
    let digest = digest_of(received.component.clone()).await?;
    let mut trail = Trail::new(app, who, &received.area, Some(&digest));
    trail.note(Step::Received, None, Some(json!({"bytes": received.component.len()})));
    trail.keep().await?;
    let staged = Staging { app, who, received: &received, digest: &digest }.run(&mut trail).await;
    let report = match staged {
        Ok(checked) => checked.report,
        Err(error) => return Err(trail.refuse(error).await),
    };
    let came_to = go_on(app, who, &received, &digest).await?;
    Ok(Deployed { digest, report, came_to })
}

/// Where it takes no time from requests: a component may have megabytes.
pub(super) async fn digest_of(component: Bytes) -> Result<String, InstallError> {
    let digest = tokio::task::spawn_blocking(move || hex::encode(Sha256::digest(&component))).await;
    Ok(digest.map_err(|error| LoadError::Host(error.into()))?)
}

async fn go_on(
    app: &App,
    who: &str,
    received: &Received,
    digest: &str,
) -> Result<CameTo, InstallError> {
    let (area, force) = (received.area.as_str(), received.force.as_deref());
    match &received.then {
        Then::Wait => Ok(CameTo::Staged),
        Then::Activate => {
            let wish = Activation { area, digest: Some(digest), why: None, force };
            let change = switch::activate(app, who, wish).await?;
            Ok(change.map_or(CameTo::Unchanged, CameTo::Live))
        }
        Then::Try(mode, share, workspaces) => {
            let wish = TrialWish {
                area: area.to_owned(),
                digest: digest.to_owned(),
                mode: *mode,
                share: *share,
                workspaces: workspaces.clone(),
                why: None,
            };
            Ok(CameTo::OnTrial(begin_trial(app, who, &wish).await?))
        }
    }
}

/// One version on its way to being kept.
struct Staging<'a> {
    app: &'a App,
    who: &'a str,
    received: &'a Received,
    digest: &'a str,
}

impl Staging<'_> {
    async fn run(&self, trail: &mut Trail<'_>) -> Result<Checked, InstallError> {
        let loaded = self.load(trail).await?;
        self.check(&loaded.manifest).await?;
        let candidate = Candidate::Fresh(Box::new(loaded));
        // Its indexes are made when it is activated or tried.
        let version = ready::planned(self.app, candidate).await?;
        rehearse(self.app, &version).await?;
        let _one_at_a_time = self.app.installing.lock().await;
        // Another version may be live by now.
        let checked = self.check(&version.manifest).await?;
        self.app.registry.plan_again(&version)?;
        let force = self.received.force.as_deref();
        trail.note(Step::Checked, force, Some(json!(checked.report)));
        self.keep(&version, &checked, trail).await?;
        self.app.node.keep_warm(&version);
        Ok(checked)
    }

    /// Holds it against what answers at this moment.
    async fn check(&self, manifest: &Manifest) -> Result<Checked, InstallError> {
        let Received { area, force, .. } = self.received;
        let at = switch::pointer(self.app, area).await?;
        checks::check(self.app, at.as_ref(), manifest, force.as_deref()).await
    }

    /// Nothing is compiled that nobody vouches for.
    async fn load(&self, trail: &mut Trail<'_>) -> Result<Loaded, InstallError> {
        let Received { area, component, signature, .. } = self.received;
        let vouched = trust::who_vouches(&self.app.config, self.digest, signature.as_ref())?;
        vouched.covers(area)?;
        let publisher = signature.as_ref().map(|signature| &signature.publisher);
        trail.note(Step::Verified, None, Some(json!({"publisher": publisher})));
        let loaded = load(self.app, Arc::from(&component[..])).await?;
        if loaded.manifest.name != *area {
            let (expected, found) = (area.clone(), loaded.manifest.name);
            return Err(InstallError::OtherArea { expected, found });
        }
        let took_ms = loaded.compiled_in.map(|took| took.as_millis());
        trail.note(Step::Compiled, None, Some(json!({"took_ms": took_ms})));
        Ok(loaded)
    }

    /// The bytes first, so that a row never names what is not there.
    async fn keep(
        &self,
        version: &AreaVersion,
        checked: &Checked,
        trail: &mut Trail<'_>,
    ) -> Result<(), InstallError> {
        let blobs = self.app.store.blobs();
        let written = blobs.write_component(self.digest, self.received.component.clone());
        let object = tokio::join!(written, compiled::share(self.app, self.digest)).0?;
        let deployment = self.deployment(version, checked, object)?;
        let manifest = serde_json::to_string(&version.manifest)
            .map_err(|error| LoadError::Host(error.into()))?;
        let mut tx = self.app.store.begin(Access::WriteLocked).await?;
        deployments::insert(&mut tx, &deployment, &manifest).await?;
        let kept = deployments::find(&mut tx, &deployment.area, self.digest).await?;
        let waits = kept.is_some_and(|kept| kept.stage == Stage::AwaitingApproval);
        let step = if waits { Step::AwaitingApproval } else { Step::Staged };
        let asks = &checked.asks;
        trail.note(step, None, Some(json!({"version": deployment.version, "asks": asks})));
        trail.keep_with(&mut tx).await?;
        tx.commit().await?;
        if waits {
            Err(checks::needs_approval(&version.manifest, self.digest, checked))
        } else {
            Ok(())
        }
    }

    fn deployment(
        &self,
        version: &AreaVersion,
        checked: &Checked,
        object: String,
    ) -> Result<Deployment, InstallError> {
        let signature = self.received.signature.as_ref();
        let stage = if checked.asks.is_empty() { Stage::Staged } else { Stage::AwaitingApproval };
        Ok(Deployment {
            number: 0,
            area: self.received.area.clone(),
            digest: self.digest.to_owned(),
            version: version.manifest.version.to_string(),
            size: self.received.component.len() as u64,
            object,
            publisher: signature.map(|signature| signature.publisher.clone()),
            signature: signature.map(Signature::bytes).transpose()?,
            stage,
            received_at: self.app.clock.now(),
            received_by: self.who.to_owned(),
            approved_at: None,
            approved_by: None,
            live_at: None,
        })
    }
}
