//! Collects newly found vulnerabilities during a call and publishes them as events.

use std::collections::BTreeMap;

use area_sdk::Scope;
use area_sdk::prelude::*;

use super::component::StoredComponent;
use crate::matching::{MatchBasis, Vulnerability};
use crate::osv::SeverityBand;

/// Published when an advisory affects packages of a repository's branch that it did not affect
/// before.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DependencyVulnerable")]
pub(crate) struct PackagesBecameVulnerable {
    advisory_id: String,
    severity: Option<SeverityBand>,
    repository_id: Uuid,
    branch_ref: Option<String>,
    audit_id: Uuid,
    /// Number of packages that the advisory newly affects.
    component_count: usize,
    /// The first packages that the advisory newly affects, at most 100.
    components: Vec<VulnerableComponent>,
}

/// A package that an advisory did not affect before and affects now.
#[derive(Serialize, JsonSchema)]
struct VulnerableComponent {
    component_id: String,
    name: String,
    version: Option<String>,
    purl: Option<String>,
    match_basis: MatchBasis,
}

event!(PackagesBecameVulnerable, "dependency.vulnerable");

/// Maximum number of packages listed in one [`PackagesBecameVulnerable`] event.
const TOLD: usize = 100;
/// Maximum number of [`PackagesBecameVulnerable`] events that one call publishes.
const MOST_TOLD: usize = 900;

/// Events about newly found vulnerabilities, collected by advisory, branch and audit before they
/// are published.
#[derive(Default)]
pub(crate) struct NewVulnerabilityEvents(
    BTreeMap<(String, Uuid, Option<String>, Uuid), PackagesBecameVulnerable>,
);

impl NewVulnerabilityEvents {
    /// Adds a vulnerability that the component did not have before to the event of its advisory.
    pub(crate) fn add(
        &mut self,
        component_id: &str,
        component: &StoredComponent,
        found: &Vulnerability,
    ) {
        let advisory_id = found.entry.advisory_id.clone();
        let (repository_id, branch_ref) = (component.repository_id, component.branch_ref.clone());
        let key = (advisory_id.clone(), repository_id, branch_ref.clone(), component.audit_id);
        let told = self.0.entry(key).or_insert_with(|| PackagesBecameVulnerable {
            advisory_id,
            severity: found.severity,
            repository_id,
            branch_ref,
            audit_id: component.audit_id,
            component_count: 0,
            components: Vec::new(),
        });
        told.component_count += 1;
        if told.components.len() < TOLD {
            told.components.push(VulnerableComponent {
                component_id: component_id.to_owned(),
                name: component.name.clone(),
                version: component.version.clone(),
                purl: component.purl.clone(),
                match_basis: found.entry.match_basis,
            });
        }
    }

    /// Publishes the collected events, at most as many as a call may publish. Logs the number of
    /// the others.
    pub(crate) fn publish(self, scope: &Scope) {
        let untold = self.0.len().saturating_sub(MOST_TOLD);
        if untold > 0 {
            area_sdk::warn!(scope, "{untold} dependency.vulnerable events were not published");
        }
        for alert in self.0.into_values().take(MOST_TOLD) {
            scope.publish(alert);
        }
    }
}
