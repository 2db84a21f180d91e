//! Deploys a version: receives, verifies, compiles, checks and stores it, and
//! activates or tries it if the request asks for that. A deployment that fails
//! changes nothing; the audit log has every step and the refusal.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::super::App;
use super::actions::{self, ActivationRequest};
use super::audit_trail::PendingAuditEntries;
use super::checks::{self, CompatibilityCheckResult, PlannedVersionUse};
use super::error::AreaActionError;
use super::install::with_writers_ended;
use super::plan::TrialRequest;
use super::smoke_test::smoke_test;
use super::trust::{self, Signature};
use super::{compiled, load, rows};
use crate::registry::{AreaTargetState, AreaVersion, LiveVersionChange};
use assurance_contract::compatibility::CompatibilityReport;
use assurance_core::domain::deployment::{AuditAction, VersionStage};
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::trial::{Trial, TrialMode, TrialShare};
use assurance_runtime::LoadedArea;
use assurance_store::{TransactionAccess, deployments};

/// An operator's request to deploy a component, with the component itself.
#[derive(Clone, Debug)]
pub struct DeployRequest {
    /// Name of the area that the operator named in the request.
    pub area: String,
    /// Content of the component's WebAssembly file.
    pub component: Bytes,
    /// The publisher's signature of the component; `None` if it is not signed.
    pub signature: Option<Signature>,
    /// What to do with the version after it is stored: nothing, activate it, or begin a trial.
    pub then: DeployAction,
    /// Operator's reason for the deployment, for the audit log; `None` if none was given.
    pub why: Option<String>,
    /// Reason to deploy the version although it breaks clients; `None` refuses such a version.
    pub force: Option<String>,
}

/// What a deployment does with a version that passed the checks and was stored.
#[derive(Clone, Debug)]
pub enum DeployAction {
    /// No further action; the version stays staged.
    Wait,
    /// The version becomes live.
    Activate,
    /// A trial of the version begins, with this mode, share of traffic, and additional workspaces.
    Try(TrialMode, TrialShare, BTreeSet<WorkspaceId>),
}

/// Report of a successful deployment: the version's digest, its differences from the live version,
/// and its state.
#[derive(Clone, Debug)]
pub struct DeployReport {
    /// SHA-256 of the component, lower-case hex.
    pub digest: String,
    /// Differences from the live version.
    pub report: CompatibilityReport,
    /// State of the version after the deployment.
    pub outcome: DeployOutcome,
}

/// State of a version after its deployment.
#[derive(Clone, Debug)]
pub enum DeployOutcome {
    /// The version was live before the deployment.
    Unchanged,
    /// The version is stored and can be activated.
    Staged,
    /// The version is live.
    Live(LiveVersionChange),
    /// The version is on trial next to the live one.
    VersionOnTrial(Trial),
}

/// Checks and stores a component as a version of its area. Activates it or begins a trial if the
/// request says so.
///
/// # Errors
/// The version is refused; see [`AreaActionError`].
pub async fn deploy(
    app: &App,
    who: &str,
    received: DeployRequest,
) -> Result<DeployReport, AreaActionError> {
    let digest = load::digest_of(received.component.clone()).await?;
    let mut trail = PendingAuditEntries::new(app, who, &received.area, Some(&digest));
    let why = received.why.as_deref();
    trail.note(AuditAction::Received, why, Some(json!({"bytes": received.component.len()})));
    trail.keep().await?;
    let staged = DeploymentInProgress { app, who, received: &received, digest: &digest }
        .run(&mut trail)
        .await;
    let report = match staged {
        Ok(checked) => checked.report,
        Err(error) => return Err(trail.refuse(error).await),
    };
    let outcome = perform_action(app, who, &received, &digest).await?;
    Ok(DeployReport { digest, report, outcome })
}

async fn perform_action(
    app: &App,
    who: &str,
    received: &DeployRequest,
    digest: &str,
) -> Result<DeployOutcome, AreaActionError> {
    let (area, force) = (received.area.as_str(), received.force.as_deref());
    let why = received.why.as_deref();
    match &received.then {
        DeployAction::Wait => Ok(DeployOutcome::Staged),
        DeployAction::Activate => {
            let activation = ActivationRequest { area, digest: Some(digest), why, force };
            let change = actions::activate(app, who, activation).await?;
            Ok(change.map_or(DeployOutcome::Unchanged, DeployOutcome::Live))
        }
        DeployAction::Try(mode, share, workspaces) => {
            let request = trial_request(received, digest, *mode, *share, workspaces);
            Ok(DeployOutcome::VersionOnTrial(actions::begin_trial(app, who, &request).await?))
        }
    }
}

/// Returns the request for a trial of the received component.
pub(super) fn trial_request(
    received: &DeployRequest,
    digest: &str,
    mode: TrialMode,
    share: TrialShare,
    workspaces: &BTreeSet<WorkspaceId>,
) -> TrialRequest {
    let (area, why) = (received.area.clone(), received.why.clone());
    let (digest, workspaces) = (digest.to_owned(), workspaces.clone());
    TrialRequest { area, digest, mode, share, workspaces, why }
}

/// A deployment in progress, until its version is stored.
pub(super) struct DeploymentInProgress<'a> {
    pub(super) app: &'a App,
    pub(super) who: &'a str,
    pub(super) received: &'a DeployRequest,
    pub(super) digest: &'a str,
}

impl DeploymentInProgress<'_> {
    async fn run(
        &self,
        trail: &mut PendingAuditEntries<'_>,
    ) -> Result<CompatibilityCheckResult, AreaActionError> {
        let loaded = self.load(trail).await?;
        let version = load::compile(self.app, loaded).await?;
        self.check(&version).await?;
        smoke_test(self.app, &version).await?;
        self.store(&version, trail).await
    }

    /// Stores a version that passed the checks. The blob store may be slow, so it is written before
    /// the lock. If the version is refused after that, the sweep deletes the objects after a day.
    pub(super) async fn store(
        &self,
        version: &Arc<AreaVersion>,
        trail: &mut PendingAuditEntries<'_>,
    ) -> Result<CompatibilityCheckResult, AreaActionError> {
        let object = self.upload().await?;
        let _one_at_a_time = self.app.installing.lock().await;
        // Checks again, because another version may be live by now.
        let checked = self.check(version).await?;
        let force = self.received.force.as_deref();
        trail.note(AuditAction::Checked, force, Some(json!(checked.report)));
        self.keep(version, &checked, object, trail).await?;
        self.app.node.keep_warm(version);
        Ok(checked)
    }

    /// Writes the component and its machine code to the blob store, under names with the digest, so
    /// that concurrent deployments of one component write the same objects. Returns the name of the
    /// component's object.
    async fn upload(&self) -> Result<String, AreaActionError> {
        let blobs = self.app.store.blobs();
        let written = blobs.write_component(self.digest, self.received.component.clone());
        Ok(tokio::join!(written, compiled::share(self.app, self.digest)).0?)
    }

    /// Compares the version with the live one and checks it against the other live areas.
    async fn check(
        &self,
        version: &Arc<AreaVersion>,
    ) -> Result<CompatibilityCheckResult, AreaActionError> {
        let DeployRequest { area, force, .. } = self.received;
        let desired = rows::area(self.app, area).await?.desired;
        let as_live = PlannedVersionUse::Live { force: force.as_deref(), kept: false };
        let checked = checks::check(self.app, &desired, version, as_live).await?;
        self.app.registry.plan(area, AreaTargetState::Live(version))?;
        Ok(checked)
    }

    /// Verifies the component's signature, then loads the component.
    async fn load(
        &self,
        trail: &mut PendingAuditEntries<'_>,
    ) -> Result<LoadedArea, AreaActionError> {
        let DeployRequest { area, component, signature, .. } = self.received;
        let publisher = trust::publisher_of(&self.app.config, self.digest, signature.as_ref())?;
        publisher.may_publish(area)?;
        let publisher = signature.as_ref().map(|signature| &signature.publisher);
        trail.note(AuditAction::Verified, None, Some(json!({"publisher": publisher})));
        let loaded = load::component(self.app, Arc::from(&component[..])).await?;
        if loaded.manifest.name != *area {
            let (expected, found) = (area.clone(), loaded.manifest.name);
            return Err(AreaActionError::OtherArea { expected, found });
        }
        let took_ms = loaded.compiled_in.map(|took| took.as_millis());
        trail.note(AuditAction::Compiled, None, Some(json!({"took_ms": took_ms})));
        Ok(loaded)
    }

    /// Writes the version's database row. `object` is the name of its component in the blob store,
    /// which was written before, so that no row names a missing object.
    pub(super) async fn keep(
        &self,
        version: &AreaVersion,
        checked: &CompatibilityCheckResult,
        object: String,
        trail: &mut PendingAuditEntries<'_>,
    ) -> Result<(), AreaActionError> {
        let (stored, signature) =
            ((object, self.received.component.len()), &self.received.signature);
        let asks = !checked.asks.is_empty();
        let stage = if asks { VersionStage::AwaitingApproval } else { VersionStage::Staged };
        let (row, manifest) =
            rows::new_version(self.app, self.who, version, stored, signature.as_ref(), stage)?;
        let beginning = self.app.store.begin(TransactionAccess::WriteLocked);
        let mut tx = with_writers_ended(self.app, &row.area, beginning).await?;
        deployments::insert(&mut tx, &row, &manifest).await?;
        let found = deployments::find(&mut tx, &row.area, self.digest).await?;
        let waits = found.is_some_and(|found| checks::waits_for_approval(found.stage, checked));
        let step = if waits { AuditAction::AwaitingApproval } else { AuditAction::Staged };
        trail.note(step, None, Some(json!({"version": row.version, "asks": checked.asks})));
        trail.keep_with(&mut tx).await?;
        tx.commit().await?;
        if waits { Err(checks::needs_approval(version, checked)) } else { Ok(()) }
    }
}
