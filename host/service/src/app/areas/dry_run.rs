//! Runs the checks of a deployment without deploying. Reports all findings
//! together and stores only machine code.

use std::sync::Arc;

use super::super::App;
use super::checks::{self, CompatibilityCheckResult, PlannedVersionUse};
use super::deploy::{DeployAction, DeployRequest, trial_request};
use super::error::{AreaActionError, IncompatibleVersion};
use super::plan::{AreaAction, plan};
use super::smoke_test::smoke_test;
use super::{load, rows, trust};
use crate::registry::{AreaTargetState, AreaVersion};
use assurance_contract::compatibility::CompatibilityReport;
use assurance_core::domain::deployment::VersionStage;
use assurance_core::domain::trial::TrialMode;
use assurance_runtime::{LoadError, LoadedArea};

/// Result of checking a component as for a deployment, without deploying it.
#[derive(Debug)]
pub struct DryRunReport {
    /// SHA-256 of the component, lower-case hex.
    pub digest: String,
    /// Differences from the live version; `None` if a finding prevented the
    /// comparison. The checks after it did not run then either.
    pub report: Option<CompatibilityReport>,
    /// Every reason for which the deployment would be refused.
    pub findings: Vec<AreaActionError>,
}

/// Runs the checks of [`deploy`](super::deploy::deploy) without storing a
/// version. A component without the signature of a trusted publisher is not
/// compiled, so the report has only that finding.
///
/// # Errors
/// The host, the database or the blob store failed. Faults of the component are
/// findings of the report.
pub async fn dry_run(app: &App, received: &DeployRequest) -> Result<DryRunReport, AreaActionError> {
    let digest = load::digest_of(received.component.clone()).await?;
    let found = DryRunReport { digest, report: None, findings: Vec::new() };
    let mut run = DryRunInProgress { app, received, found };
    let loaded = run.load().await;
    if let Some(loaded) = run.keep(loaded)? {
        let named = run.name(&loaded);
        run.keep(named)?;
        let compiled = load::compile(app, loaded).await;
        if let Some(version) = run.keep(compiled)? {
            run.check(&version).await?;
        }
    }
    Ok(run.found)
}

pub(super) struct DryRunInProgress<'a> {
    pub(super) app: &'a App,
    pub(super) received: &'a DeployRequest,
    pub(super) found: DryRunReport,
}

impl DryRunInProgress<'_> {
    /// Returns the value of a successful check. For a refusal, adds it to the
    /// findings and returns `None`. Returns an error only if the host, the
    /// database or the blob store failed.
    fn keep<T>(
        &mut self,
        checked: Result<T, AreaActionError>,
    ) -> Result<Option<T>, AreaActionError> {
        match checked {
            Ok(value) => Ok(Some(value)),
            Err(
                error @ (AreaActionError::Store(_)
                | AreaActionError::Damaged { .. }
                | AreaActionError::Missing { .. }
                | AreaActionError::Load(LoadError::Host(_))),
            ) => Err(error),
            Err(error) => {
                if let AreaActionError::Incompatible(IncompatibleVersion { report, .. }) = &error {
                    self.found.report = Some(report.clone());
                }
                self.found.findings.push(error);
                Ok(None)
            }
        }
    }

    async fn load(&self) -> Result<LoadedArea, AreaActionError> {
        let DeployRequest { area, component, signature, .. } = self.received;
        let publisher =
            trust::publisher_of(&self.app.config, &self.found.digest, signature.as_ref())?;
        publisher.may_publish(area)?;
        Ok(load::component(self.app, Arc::from(&component[..])).await?)
    }

    fn name(&self, loaded: &LoadedArea) -> Result<(), AreaActionError> {
        let (expected, found) = (self.received.area.clone(), loaded.manifest.name.clone());
        if expected == found { Ok(()) } else { Err(AreaActionError::OtherArea { expected, found }) }
    }

    pub(super) async fn check(
        &mut self,
        version: &Arc<AreaVersion>,
    ) -> Result<(), AreaActionError> {
        let compared = self.compare(version).await;
        self.keep(compared)?;
        let tried = self.may_be_tried(version).await;
        self.keep(tried)?;
        let target = AreaTargetState::Live(version);
        let planned = self.app.registry.plan(&version.manifest.name, target);
        self.keep(planned.map_err(AreaActionError::from))?;
        // The first conflict is the error of `plan`.
        let conflicts = self.app.registry.snapshot().conflicts(version).into_iter().skip(1);
        self.found.findings.extend(conflicts.map(AreaActionError::from));
        let called = smoke_test(self.app, version).await;
        self.keep(called)?;
        Ok(())
    }

    /// Compares the version with the live one, for the use that the deploy
    /// request names.
    async fn compare(&mut self, version: &AreaVersion) -> Result<(), AreaActionError> {
        let desired = rows::area(self.app, &version.manifest.name).await?.desired;
        let force = self.received.force.as_deref();
        let as_live = PlannedVersionUse::Live { force, kept: false };
        let compared = checks::check(self.app, &desired, version, as_live).await;
        if let Some(checked) = self.keep(compared)? {
            self.found.report = Some(checked.report);
            if let DeployAction::Try(TrialMode::Canary, ..) = self.received.then {
                let tried = checks::check(self.app, &desired, version, PlannedVersionUse::Canary);
                self.keep(tried.await)?;
            }
        }
        // A refused comparison has no capabilities.
        let asked = checks::check(self.app, &desired, version, PlannedVersionUse::Shadow).await?;
        let report = self.found.report.clone().unwrap_or_default();
        self.approved(version, &CompatibilityCheckResult { report, ..asked }).await
    }

    /// Refuses additional capabilities, unless this component (by digest) was
    /// approved before.
    async fn approved(
        &self,
        version: &AreaVersion,
        checked: &CompatibilityCheckResult,
    ) -> Result<(), AreaActionError> {
        if checked.asks.is_empty() {
            return Ok(());
        }
        let known = rows::find(self.app, &version.manifest.name, &self.found.digest).await?;
        if known.is_some_and(|known| known.stage != VersionStage::AwaitingApproval) {
            return Ok(());
        }
        Err(checks::needs_approval(version, checked))
    }

    /// Refuses the requested trial if it could not begin now.
    async fn may_be_tried(&self, version: &AreaVersion) -> Result<(), AreaActionError> {
        let DeployAction::Try(mode, share, workspaces) = &self.received.then else {
            return Ok(());
        };
        let state = rows::area(self.app, &version.manifest.name).await?;
        let request = trial_request(self.received, &self.found.digest, *mode, *share, workspaces);
        plan(&state, &AreaAction::BeginTrial { request, who: "" })?;
        Ok(())
    }
}
