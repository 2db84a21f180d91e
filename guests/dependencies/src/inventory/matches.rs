//! Matches: a component under each name of each of its advisories, so that a
//! list of what an advisory affects is the walk of an index.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Query, Scope, Value};

use super::component::StoredComponent;
use crate::matching::{Assessment, MatchBasis, Vulnerability};
use crate::osv::Rating;

/// How many packages one question holds.
const KEYS: usize = 500;

/// A component under one name of an advisory.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredMatch {
    pub(crate) advisory_key: String,
    pub(crate) component_id: String,
    pub(crate) identity: String,
    pub(crate) latest: bool,
    pub(crate) repository_id: Uuid,
    pub(crate) branch_ref: Option<String>,
    pub(crate) audit_id: Uuid,
    pub(crate) name: String,
    pub(crate) ecosystem: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) search_text: String,
}

impl Document for StoredMatch {
    const COLLECTION: &'static str = "matches";
}

/// The id of a match.
fn id(component_id: &str, advisory_key: &str) -> String {
    format!("{component_id}/{advisory_key}")
}

impl StoredMatch {
    fn new(component_id: &str, component: &StoredComponent, advisory_key: String) -> Self {
        Self {
            advisory_key,
            component_id: component_id.to_owned(),
            identity: component.identity.clone(),
            latest: component.latest,
            repository_id: component.repository_id,
            branch_ref: component.branch_ref.clone(),
            audit_id: component.audit_id,
            name: component.name.clone(),
            ecosystem: component.ecosystem.clone(),
            version: component.version.clone(),
            search_text: component.search_text.clone(),
        }
    }
}

/// Writes an assessment into a component; whether anything changed.
pub(crate) fn apply(component: &mut StoredComponent, assessment: &Assessment) -> bool {
    let entries = assessment.vulnerabilities.iter().map(|found| found.entry.clone()).collect();
    let keys: BTreeSet<&String> =
        assessment.vulnerabilities.iter().flat_map(|found| &found.names).collect();
    let keys: Vec<String> = keys.into_iter().cloned().collect();
    let questions: Vec<String> = assessment.limitations.iter().cloned().collect();
    let changed = component.advisories != entries
        || component.advisory_keys != keys
        || component.open_questions != questions
        || !component.ended.iter().eq(&assessment.ended);
    component.advisories = entries;
    component.advisory_keys = keys;
    component.open_questions = questions;
    component.ended = assessment.ended.iter().cloned().collect();
    changed
}

/// Keeps the matches of new components.
pub(crate) fn create<'a>(
    scope: &Scope,
    components: impl Iterator<Item = (&'a str, &'a StoredComponent)>,
) -> Result<(), DocumentError> {
    let mut matches = Vec::new();
    for (component_id, component) in components {
        for key in &component.advisory_keys {
            let found = StoredMatch::new(component_id, component, key.clone());
            matches.push((id(component_id, key), found));
        }
    }
    scope.documents().create_all(matches.iter().map(|(id, found)| (id, found)))
}

/// Brings a component's matches from these names to the ones it has now.
pub(crate) fn renew(
    scope: &Scope,
    component: &Stored<StoredComponent>,
    before: &[String],
) -> Result<(), DocumentError> {
    let documents = scope.documents::<StoredMatch>();
    let now = &component.advisory_keys;
    let gone = without(before, now).map(|key| id(&component.id, key));
    documents.delete_all(&documents.get_many(gone)?)?;
    let added: Vec<(String, StoredMatch)> = without(now, before)
        .map(|key| {
            (id(&component.id, key), StoredMatch::new(&component.id, component, key.clone()))
        })
        .collect();
    documents.create_all(added.iter().map(|(id, found)| (id, found)))
}

/// Documents that [`renew`] reads and writes between these names.
pub(crate) fn renewal_cost(now: &[String], before: &[String]) -> usize {
    2 * without(before, now).count() + without(now, before).count()
}

/// The keys that are not among the others. Both are in order, as [`apply`]
/// writes them.
fn without<'a>(keys: &'a [String], others: &[String]) -> impl Iterator<Item = &'a String> {
    keys.iter().filter(|key| others.binary_search(key).is_err())
}

/// The names under which these packages are known to be affected already.
pub(crate) fn known(
    scope: &Scope,
    identities: &[&str],
) -> Result<BTreeSet<(String, String)>, DocumentError> {
    let mut known = BTreeSet::new();
    for identities in identities.chunks(KEYS) {
        for found in of_packages(scope, identities).ascending("identity").limit(1000).all() {
            let found = found?.value;
            known.insert((found.identity, found.advisory_key));
        }
    }
    Ok(known)
}

/// How many documents [`known`] reads for each of these packages.
pub(crate) fn known_counts(
    scope: &Scope,
    identities: &[&str],
) -> Result<BTreeMap<String, usize>, DocumentError> {
    let mut counts = BTreeMap::new();
    for identities in identities.chunks(KEYS) {
        for (identity, count) in of_packages(scope, identities).count_by(&["identity"])? {
            if let [Value::Text(identity)] = identity.as_slice() {
                counts.insert(identity.clone(), usize::try_from(count).unwrap_or(usize::MAX));
            }
        }
    }
    Ok(counts)
}

fn of_packages<'a>(scope: &'a Scope, identities: &[&str]) -> Query<'a, StoredMatch> {
    let latest = scope.documents::<StoredMatch>().query().equals("latest", true);
    latest.one_of("identity", identities.iter().copied())
}

/// Told when packages of a repository's branch are found to be affected by an
/// advisory that did not affect them before.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DependencyVulnerable {
    advisory_id: String,
    severity: Option<Rating>,
    repository_id: Uuid,
    branch_ref: Option<String>,
    audit_id: Uuid,
    /// How many packages.
    component_count: usize,
    /// At most 100 of them.
    components: Vec<VulnerableComponent>,
}

/// A package that is affected.
#[derive(Serialize, JsonSchema)]
struct VulnerableComponent {
    component_id: String,
    name: String,
    version: Option<String>,
    purl: Option<String>,
    match_basis: MatchBasis,
}

impl Event for DependencyVulnerable {
    const NAME: &'static str = "dependency.vulnerable";
}

/// Components of one event.
const TOLD: usize = 100;
/// Events of one call, which has others to publish too.
const MOST_TOLD: usize = 900;

/// Vulnerabilities that were not known before, gathered to be told.
#[derive(Default)]
pub(crate) struct Alerts(BTreeMap<(String, Uuid, Option<String>, Uuid), DependencyVulnerable>);

impl Alerts {
    /// Notes that a component is newly affected.
    pub(crate) fn add(
        &mut self,
        component_id: &str,
        component: &StoredComponent,
        found: &Vulnerability,
    ) {
        let advisory_id = found.entry.advisory_id.clone();
        let (repository_id, branch_ref) = (component.repository_id, component.branch_ref.clone());
        let key = (advisory_id.clone(), repository_id, branch_ref.clone(), component.audit_id);
        let told = self.0.entry(key).or_insert_with(|| DependencyVulnerable {
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

    /// Tells, if the call commits: no more than a call may.
    pub(crate) fn publish(self, scope: &Scope) {
        let untold = self.0.len().saturating_sub(MOST_TOLD);
        if untold > 0 {
            area_sdk::warn!(scope, "{untold} of dependency.vulnerable are not told");
        }
        for alert in self.0.into_values().take(MOST_TOLD) {
            scope.publish(alert);
        }
    }
}
