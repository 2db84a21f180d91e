//! Finds the deployments of the components on one page, with common queries.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::catalog::Service;

use super::document::{Deployment, StoredDeployment, commit_key};
use super::said::Reachability;
use crate::inventory::component::StoredComponent;
use crate::sbom;

/// Maximum number of deployments that are read for one page of dependencies, by commit and by image
/// each.
const MOST: u32 = 200;

/// Certainty that a deployment contains a package of an SBOM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PackageRelationship")]
pub(crate) enum PackagePresence {
    /// The SBOM describes the deployed image, or it describes the deployed commit and does not mark
    /// the package as optional or excluded.
    Evidenced,
    /// The SBOM describes the deployed commit and marks the package as optional or excluded, so it
    /// is unknown whether the deployment contains the package.
    Possible,
}

/// A deployment that may contain a dependency, with its service and the certainty.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeploymentEntry")]
pub(crate) struct ContainingDeployment {
    deployment: Deployment,
    /// Id of the user who owns the deployed service; null if the catalog has none.
    owner_id: Option<Uuid>,
    package_relationship: PackagePresence,
    runtime_reachability: Reachability,
    service_id: Option<Uuid>,
    service_name: Option<String>,
}

/// Deployments of the components on a page, and the services of these deployments.
#[derive(Default)]
pub(crate) struct PageComponentDeployments {
    deployments: Vec<Stored<StoredDeployment>>,
    services: BTreeMap<Uuid, Service>,
    /// Whether the components have more deployments than were read.
    more: bool,
}

impl PageComponentDeployments {
    /// Reads the current deployments of the components on one page of the dependency list.
    pub(crate) fn load(
        scope: &Scope,
        components: &[Stored<StoredComponent>],
    ) -> Result<Self, DocumentError> {
        let commits: BTreeSet<String> =
            components.iter().filter_map(|component| component.commit_key()).collect();
        let digests: BTreeSet<&String> =
            components.iter().filter_map(|component| component.subject_digest.as_ref()).collect();
        let by_commit = current(scope, "commit_key", commits)?;
        let by_digest = current(scope, "image_digest", digests)?;
        let more = by_commit.next_cursor.is_some() || by_digest.next_cursor.is_some();
        let mut deployments = by_commit.items;
        for found in by_digest.items {
            if !deployments.iter().any(|known| known.id == found.id) {
                deployments.push(found);
            }
        }
        deployments.sort_by(|a, b| (b.observed_at, &b.id).cmp(&(a.observed_at, &a.id)));
        let ids: BTreeSet<Uuid> = deployments.iter().filter_map(|found| found.service_id).collect();
        let services = scope.documents::<Service>().get_many(ids)?.into_iter();
        let services = services.map(|service| (service.uuid(), service.value)).collect();
        Ok(Self { deployments, services, more })
    }

    /// Returns the limitation for the whole page if there are more deployments than were read.
    pub(crate) fn limitations(&self) -> BTreeSet<String> {
        let text = format!("There are more deployments than the newest {MOST}, which are shown.");
        self.more.then_some(text).into_iter().collect()
    }

    /// Returns the deployments that contain a dependency (same commit or image digest), newest
    /// first, and the reasons why deployments may be missing.
    pub(crate) fn of(
        &self,
        component: &StoredComponent,
        now: Timestamp,
    ) -> (Vec<ContainingDeployment>, Vec<String>) {
        let commit = component.commit_key();
        let mut limitations = Vec::new();
        if commit.is_none() && component.subject_digest.is_none() {
            let text = "Neither a commit nor an image is known, so deployments are not joined.";
            limitations.push(text.to_owned());
        }
        let of_image = |found: &StoredDeployment| {
            found.image_digest.is_some() && found.image_digest == component.subject_digest
        };
        let of_commit = |found: &StoredDeployment| commit.is_some() && found.commit_key == commit;
        let found = self.deployments.iter().filter(|found| of_image(found) || of_commit(found));
        let entries = found.map(|found| {
            let relationship = relationship(component, of_image(found));
            self.entry(component, found, relationship, now)
        });
        (entries.collect(), limitations)
    }

    fn entry(
        &self,
        component: &StoredComponent,
        found: &Stored<StoredDeployment>,
        package_relationship: PackagePresence,
        now: Timestamp,
    ) -> ContainingDeployment {
        let service = found.service_id.and_then(|id| self.services.get(&id));
        let reached =
            found.packages.iter().find(|package| Some(&package.purl) == component.purl.as_ref());
        ContainingDeployment {
            deployment: Deployment::new(found, Some(component.audit_id), now),
            owner_id: service.and_then(|service| service.owner_id),
            package_relationship,
            runtime_reachability: reached.map(|package| package.reachability).unwrap_or_default(),
            service_id: found.service_id,
            service_name: service
                .map_or_else(|| found.service_name.clone(), |s| Some(s.name.clone())),
        }
    }
}

fn relationship(component: &StoredComponent, of_image: bool) -> PackagePresence {
    let left_out = matches!(component.scope, Some(sbom::Scope::Optional | sbom::Scope::Excluded));
    if left_out && !of_image { PackagePresence::Possible } else { PackagePresence::Evidenced }
}

impl StoredComponent {
    fn commit_key(&self) -> Option<String> {
        self.commit_sha.as_deref().map(|sha| commit_key(self.repository_id, sha))
    }
}

/// Returns the newest current deployments whose `field` has one of these values, newest first.
fn current(
    scope: &Scope,
    field: &str,
    values: BTreeSet<impl Into<area_sdk::Value>>,
) -> Result<Page<Stored<StoredDeployment>>, DocumentError> {
    if values.is_empty() {
        return Ok(Page { items: Vec::new(), next_cursor: None });
    }
    let current = scope.documents::<StoredDeployment>().query().equals("current", true);
    current.one_of(field, values).descending("observed_at").limit(MOST).page()
}
