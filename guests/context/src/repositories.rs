//! Repositories as sources of the workspace context: their latest audits, deployments and services.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobError, Query};
use area_shared::catalog::{Repository, Service};
use area_shared::counts::{Deployment, distinct};

use crate::content::{ContextSource, SourceCompleteness, SourceKind, share};

/// Maximum number of repositories in a snapshot of the workspace context.
const LISTED: u32 = 500;

/// Maximum number of services whose links are read. A call reads at most 10,000 documents by
/// default, and the content of a snapshot needs up to 2,500 others.
const LINKED: usize = 5_000;

/// Signals expected of every repository, in alphabetical order.
pub(crate) const SIGNALS: [&str; 5] =
    ["dependencies", "deployments", "findings", "ownership", "services"];

/// The latest completed audit of a repository; all members are null or empty if there is none.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LatestAudit {
    audit_id: Option<Uuid>,
    commit_sha: Option<String>,
    completed_at: Option<Timestamp>,
    /// Signals that the audit imported, a subset of [`SIGNALS`].
    signals: BTreeSet<String>,
}

document!(LatestAudit, "audited");

/// Members of an audit of the area `schedules` that this area reads.
#[derive(Serialize, Deserialize)]
struct Audit {
    repository_id: Uuid,
    commit_sha: Option<String>,
    completed_at: Option<Timestamp>,
    inputs: Vec<AuditInput>,
    records: Vec<Uuid>,
    parts: AreaAuditResultsExtract,
}

document!(Audit, "schedules.audits");

#[derive(Serialize, Deserialize)]
struct AuditInput {
    format: String,
}

#[derive(Serialize, Deserialize)]
struct AreaAuditResultsExtract {
    findings: AreaAuditResultExtract,
    dependencies: AreaAuditResultExtract,
    ownership: AreaAuditResultExtract,
}

#[derive(Serialize, Deserialize)]
struct AreaAuditResultExtract {
    status: String,
    #[serde(default)]
    counts: BTreeMap<String, i64>,
}

impl AreaAuditResultExtract {
    fn succeeded(&self) -> bool {
        self.status == "succeeded"
    }

    /// Whether this part of an audit imported at least one item of this kind, for example `rules`.
    fn has(&self, counted: &str) -> bool {
        self.succeeded() && self.counts.get(counted).is_some_and(|count| *count > 0)
    }
}

impl Audit {
    /// Returns the signals that the audit imported.
    fn signals(&self) -> BTreeSet<String> {
        let has = |formats: &[&str]| {
            self.inputs.iter().any(|input| formats.contains(&input.format.as_str()))
        };
        let findings = has(&["sarif"]) || !self.records.is_empty();
        let there = [
            ("dependencies", self.parts.dependencies.succeeded() && has(&["cyclonedx", "spdx"])),
            ("findings", self.parts.findings.succeeded() && findings),
            // A file without rules, or in another format, was read but says nothing.
            ("ownership", self.parts.ownership.has("rules")),
        ];
        there.into_iter().filter(|(_, there)| *there).map(|(name, _)| name.to_owned()).collect()
    }
}

impl LatestAudit {
    fn by(audit: &Stored<Audit>) -> Self {
        Self {
            audit_id: Some(audit.uuid()),
            commit_sha: audit.commit_sha.clone(),
            completed_at: audit.completed_at,
            signals: audit.signals(),
        }
    }
}

/// Stores a completed audit as the latest of its repository, unless a later one is stored.
pub(crate) fn note(scope: &Scope, audit_id: Uuid) -> Result<(), JobError> {
    let Some(audit) = scope.documents::<Audit>().find(audit_id)? else { return Ok(()) };
    let new = LatestAudit::by(&audit);
    let documents = scope.documents::<LatestAudit>();
    match documents.find(audit.repository_id)? {
        Some(noted) if noted.completed_at >= new.completed_at => {}
        Some(mut noted) => {
            noted.value = new;
            documents.replace(&mut noted)?;
        }
        None => documents.create(audit.repository_id, &new)?,
    }
    Ok(())
}

/// Reads the audits of at most `most` listed repositories without a stored one: new repositories,
/// and all if this area was installed later. Returns false if there may be more.
pub(crate) fn catch_up(scope: &Scope, most: usize) -> Result<bool, DocumentError> {
    let repositories = RepositoriesAndServices::listed(scope)?;
    let ids: Vec<Uuid> = repositories.iter().map(Stored::uuid).collect();
    let noted = scope.documents::<LatestAudit>().get_many(&ids)?;
    let noted: BTreeSet<Uuid> = noted.iter().map(Stored::uuid).collect();
    let unknown: Vec<Uuid> = ids.into_iter().filter(|id| !noted.contains(id)).collect();
    for id in unknown.iter().take(most) {
        let audits = scope.documents::<Audit>().query().equals("repository_id", *id);
        let latest = audits.equals("state", "completed").first()?;
        let audited = latest.as_ref().map(LatestAudit::by).unwrap_or_default();
        scope.documents().create(id, &audited)?;
    }
    Ok(unknown.len() <= most)
}

/// Repositories of the workspace for its context, with counts of services and of their links.
pub(crate) struct RepositoriesAndServices {
    pub(crate) repository_count: u64,
    pub(crate) service_count: u64,
    /// Number of links from the newest 5,000 services to repositories, groups and owners.
    pub(crate) service_links: u64,
    /// Newest repositories of the workspace, at most 500, newest first.
    repositories: Vec<Stored<Repository>>,
    with_service: BTreeSet<Uuid>,
    by_name: BTreeMap<String, Uuid>,
}

impl RepositoriesAndServices {
    pub(crate) fn load(scope: &Scope) -> Result<Self, DocumentError> {
        let repositories = Self::listed(scope)?;
        let by_name =
            repositories.iter().map(|repository| (repository.name.clone(), repository.uuid()));
        let mut landscape = Self {
            repository_count: Self::live(scope).count()?,
            service_count: scope.documents::<Service>().query().count()?,
            service_links: 0,
            by_name: by_name.collect(),
            repositories,
            with_service: BTreeSet::new(),
        };
        landscape.add_services(scope)?;
        Ok(landscape)
    }

    fn listed(scope: &Scope) -> Result<Vec<Stored<Repository>>, DocumentError> {
        Self::live(scope).limit(LISTED).list()
    }

    /// Returns the query of the repositories that are not archived, newest first.
    fn live(scope: &Scope) -> Query<'_, Repository> {
        scope.documents::<Repository>().query().equals("archived", false)
    }

    fn add_services(&mut self, scope: &Scope) -> Result<(), DocumentError> {
        for service in scope.documents::<Service>().query().limit(1000).all().take(LINKED) {
            let service = service?.value;
            let people = [service.group_id, service.owner_id].into_iter().flatten().count();
            self.service_links += (service.repository_ids.len() + people) as u64;
            self.with_service.extend(service.repository_ids);
        }
        Ok(())
    }

    /// Returns the id of the repository in the snapshot with this name.
    pub(crate) fn repository_named(&self, name: &str) -> Option<Uuid> {
        self.by_name.get(name).copied()
    }
}

/// Returns the repositories of the snapshot as sources of the workspace context.
pub(crate) fn sources(
    scope: &Scope,
    landscape: &RepositoriesAndServices,
) -> Result<Vec<ContextSource>, DocumentError> {
    let ids = landscape.repositories.iter().map(Stored::uuid);
    let audited = scope.documents::<LatestAudit>().get_many(ids)?.into_iter();
    let mut audited: BTreeMap<Uuid, LatestAudit> =
        audited.map(|audited| (audited.uuid(), audited.value)).collect();
    let deployed = deployed(scope, &landscape.repositories)?;
    let sources = landscape.repositories.iter().map(|repository| {
        let id = repository.uuid();
        let mut audited = audited.remove(&id).unwrap_or_default();
        if deployed.contains(&repository.id) {
            audited.signals.insert("deployments".to_owned());
        }
        if landscape.with_service.contains(&id) {
            audited.signals.insert("services".to_owned());
        }
        source(repository, audited)
    });
    Ok(sources.collect())
}

/// Returns the ids of those repositories that have a current deployment.
fn deployed(
    scope: &Scope,
    repositories: &[Stored<Repository>],
) -> Result<BTreeSet<String>, DocumentError> {
    let now = scope.documents::<Deployment>().query().equals("current", true);
    let of_these = now.one_of("repository_id", repositories.iter().map(Stored::uuid));
    distinct(of_these, "repository_id")
}

fn source(repository: &Stored<Repository>, audited: LatestAudit) -> ContextSource {
    let is_missing = |signal: &&str| !audited.signals.contains(*signal);
    let missing: Vec<String> =
        SIGNALS.into_iter().filter(is_missing).map(ToOwned::to_owned).collect();
    ContextSource {
        audit_id: audited.audit_id,
        commit_sha: audited.commit_sha,
        coverage: share(SIGNALS.len() - missing.len(), SIGNALS.len()),
        key: format!("repository:{}", repository.id),
        kind: SourceKind::Repository,
        mcp_ingestion_id: None,
        name: repository.name.clone(),
        observed_at: audited.completed_at,
        repository_id: Some(repository.uuid()),
        status: match missing.len() {
            0 => SourceCompleteness::Complete,
            all if all == SIGNALS.len() => SourceCompleteness::Missing,
            _ => SourceCompleteness::Partial,
        },
        missing_signals: missing,
        signals: audited.signals.into_iter().collect(),
    }
}
