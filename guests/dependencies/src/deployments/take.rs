//! Imports evidence records about deployments: each creates a deployment or updates one.

use std::cmp::Reverse;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobError, Scope};
use area_shared::catalog::{Repository, Service};
use area_shared::evidence::EvidenceRecord;

use super::document::{
    ConfidenceBasis, DeploymentEvidenceLink, DeploymentRecorded, EvidenceRecordSnapshot,
    MOST_EVIDENCE, StoredDeployment, commit_key,
};
use super::places;
use super::said::{DeploymentDescription, image_digest};
use crate::text::{bounded, is_commit};

/// Maximum number of former deployments of a slot, those stored last, that are compared with older
/// evidence.
const MOST_FORMER: u32 = 5;

/// Imports an evidence record about a deployment. `content` is the uploaded content that the record
/// references; `None` if it is not available.
pub(crate) fn take(
    ctx: &JobCtx,
    record: &EvidenceRecord,
    content: Option<&[u8]>,
) -> Result<(), JobError> {
    let (said, basis) = describe_deployment(record, content);
    let links = ctx.documents::<DeploymentEvidenceLink>();
    match links.find(record.evidence_id)? {
        // An evidence record that was imported changes its deployment only when its content becomes
        // available.
        Some(link) if basis == ConfidenceBasis::Content && link.confidence_basis != basis => {
            forget(ctx, &link, record.evidence_id)?;
            links.delete(&link)?;
        }
        Some(_) => return Ok(()),
        None => {}
    }
    let new = deployment(ctx, record, said, basis)?;
    let deployment_id = keep(ctx, new)?;
    let link = DeploymentEvidenceLink { deployment_id, confidence_basis: basis };
    Ok(links.create(record.evidence_id, &link)?)
}

/// Returns the description of the deployment in an evidence record, and the part of the record that
/// contains it.
fn describe_deployment(
    record: &EvidenceRecord,
    content: Option<&[u8]>,
) -> (DeploymentDescription, ConfidenceBasis) {
    let content = content.and_then(|bytes| std::str::from_utf8(bytes).ok());
    if let Some(said) = content.and_then(DeploymentDescription::read) {
        return (said, ConfidenceBasis::Content);
    }
    match DeploymentDescription::read(&record.summary) {
        Some(said) => (said, ConfidenceBasis::Summary),
        None => (DeploymentDescription::default(), ConfidenceBasis::Record),
    }
}

/// Removes an evidence record from its deployment. Deletes the deployment if no evidence is left;
/// if it was the current one of its slot, the former one becomes current.
fn forget(
    ctx: &JobCtx,
    link: &Stored<DeploymentEvidenceLink>,
    evidence_id: Uuid,
) -> Result<(), DocumentError> {
    let documents = ctx.documents::<StoredDeployment>();
    let Some(mut old) = documents.find(link.deployment_id)? else { return Ok(()) };
    old.evidence.retain(|evidence| evidence.evidence_id != evidence_id);
    if !old.evidence.is_empty() {
        return documents.replace(&mut old);
    }
    documents.delete(&old)?;
    if old.current { restore_former(ctx, &old.slot) } else { Ok(()) }
}

/// Makes the former deployment that was observed last the current one of its slot, if there is one.
fn restore_former(ctx: &JobCtx, slot: &str) -> Result<(), DocumentError> {
    let documents = ctx.documents::<StoredDeployment>();
    let former = documents.query().equals("slot", slot).equals("current", false);
    let last = former.descending("observed_at").first()?;
    let Some(mut last) = last else { return Ok(()) };
    last.current = true;
    documents.replace(&mut last)
}

/// Creates the deployment that an evidence record and the description in it (`said`) show.
fn deployment(
    scope: &Scope,
    record: &EvidenceRecord,
    said: DeploymentDescription,
    basis: ConfidenceBasis,
) -> Result<StoredDeployment, DocumentError> {
    let subject = record.subject_key.as_str();
    let subject = subject.strip_prefix("repository:").unwrap_or(subject);
    let repository = said.repository.as_deref().unwrap_or(subject);
    let repository_id = places::named::<Repository>(scope, repository)?.map(|found| found.uuid());
    let service = match (said.service.as_deref(), repository_id) {
        (Some(named), _) => places::named::<Service>(scope, named)?,
        (None, Some(repository_id)) => places::service_of(scope, repository_id)?,
        (None, None) => places::named(scope, subject)?,
    };
    let service_name = service.as_ref().map(|service| service.name.clone()).or(said.service);
    let revision = Some(&record.source_revision).filter(|revision| is_commit(revision));
    let commit_sha = said.commit_sha.or_else(|| revision.map(|sha| sha.to_lowercase()));
    let digests = [subject, record.source_ref.as_str()].into_iter().find_map(image_digest);
    let external_id = Some(&record.source_external_id).filter(|id| !id.is_empty());
    let service_id = service.map(|service| service.uuid());
    let place = service_id.map(|id| id.to_string()).or_else(|| service_name.clone());
    let place = place.or(repository_id.map(|id| id.to_string()));
    let slot = [
        &place.unwrap_or_else(|| subject.to_owned()),
        said.environment.as_deref().unwrap_or_default(),
        &said.resource_keys.join("\n"),
    ];
    Ok(StoredDeployment {
        current: true,
        slot: scope.sha256_hex(slot.join("\n\n").as_bytes()),
        commit_key: repository_id.zip(commit_sha.as_ref()).map(|(id, sha)| commit_key(id, sha)),
        repository_id,
        service_id,
        service_name,
        environment: said.environment,
        branch_ref: said.branch_ref,
        commit_sha,
        image_digest: said.image_digest.or(digests),
        configuration_sha256: said.configuration_sha256,
        resource_keys: said.resource_keys,
        packages: said.packages,
        content_sha256: record.content_sha256.clone(),
        confidence_basis: basis,
        observed_at: record.observed_at,
        received_at: scope.now(),
        source_event_id: said.event_id.or_else(|| external_id.map(|id| bounded(id, 500))),
        source_kind: record.source_kind.clone(),
        source_ref: record.source_ref.clone(),
        evidence: vec![snapshot(record)],
    })
}

fn snapshot(record: &EvidenceRecord) -> EvidenceRecordSnapshot {
    EvidenceRecordSnapshot {
        evidence_id: record.evidence_id,
        kind: record.kind.clone(),
        provider: record.provider.clone(),
        subject_key: record.subject_key.clone(),
        source_ref: record.source_ref.clone(),
        content_sha256: record.content_sha256.clone(),
        confidence: record.confidence,
        observed_at: record.observed_at,
        producer_id: record.producer_id,
    }
}

impl StoredDeployment {
    /// Whether both deployments run the same commit of a repository, image and configuration.
    fn is_same_as(&self, other: &Self) -> bool {
        let what = |of: &Self| {
            let who = (of.repository_id, of.commit_sha.clone());
            (who, of.image_digest.clone(), of.configuration_sha256.clone())
        };
        what(self) == what(other)
    }

    /// Replaces the properties of the deployment by those in newer evidence, and keeps the earlier
    /// evidence records.
    fn renew(&mut self, newer: Self) {
        let (earlier, received_at) = (std::mem::take(&mut self.evidence), self.received_at);
        *self = Self { received_at, ..newer };
        self.add_evidence(earlier);
    }

    /// Adds evidence records to those of the deployment, and keeps the newest of all.
    fn add_evidence(&mut self, records: Vec<EvidenceRecordSnapshot>) {
        self.evidence.extend(records);
        self.evidence.sort_by_key(|record| Reverse(record.observed_at));
        self.evidence.truncate(MOST_EVIDENCE);
    }
}

/// Stores a deployment. If a deployment of its slot runs the same software, updates that one
/// instead: the current one, or the former one to which older evidence belongs. Returns the id of
/// the stored or updated deployment.
fn keep(ctx: &JobCtx, mut new: StoredDeployment) -> Result<Uuid, DocumentError> {
    let documents = ctx.documents::<StoredDeployment>();
    let there = documents.query().equals("slot", &new.slot).equals("current", true);
    if let Some(mut there) = there.ascending("slot").first()? {
        if there.is_same_as(&new) {
            return update(ctx, there, new);
        }
        new.current = there.observed_at <= new.observed_at;
        if new.current {
            there.current = false;
            documents.replace(&mut there)?;
        } else if let Some(former) = former(ctx, &new)? {
            return update(ctx, former, new);
        }
    }
    let id = ctx.new_id();
    documents.create(id, &new)?;
    tell(ctx, id, &new);
    Ok(id)
}

/// Adds newer or older evidence to a deployment. Returns the id of the deployment.
fn update(
    scope: &Scope,
    mut there: Stored<StoredDeployment>,
    new: StoredDeployment,
) -> Result<Uuid, DocumentError> {
    if there.observed_at <= new.observed_at {
        there.renew(new);
    } else {
        there.add_evidence(new.evidence);
    }
    let id = there.uuid();
    scope.documents().replace(&mut there).map(|()| id)
}

/// Returns the former deployment of a slot to which older evidence belongs: the last one observed
/// before it or the first one after it, if that runs the same software.
fn former(
    scope: &Scope,
    new: &StoredDeployment,
) -> Result<Option<Stored<StoredDeployment>>, DocumentError> {
    let all = scope.documents::<StoredDeployment>().query().equals("slot", &new.slot);
    let all = all.equals("current", false).descending("slot").limit(MOST_FORMER).list()?;
    let is_before = |one: &Stored<StoredDeployment>| one.observed_at <= new.observed_at;
    let (before, after): (Vec<_>, Vec<_>) = all.into_iter().partition(is_before);
    let before = before.into_iter().max_by_key(|one| one.observed_at);
    let after = after.into_iter().min_by_key(|one| one.observed_at);
    Ok([before, after].into_iter().flatten().find(|one| one.is_same_as(new)))
}

fn tell(ctx: &JobCtx, deployment_id: Uuid, new: &StoredDeployment) {
    ctx.publish(DeploymentRecorded {
        deployment_id,
        repository_id: new.repository_id,
        service_id: new.service_id,
        service_name: new.service_name.clone(),
        environment: new.environment.clone(),
        commit_sha: new.commit_sha.clone(),
        image_digest: new.image_digest.clone(),
        observed_at: new.observed_at,
    });
}
