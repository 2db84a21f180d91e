//! Matches: one document for each component and each name of each advisory that affects it, so that
//! an index lists the components that an advisory affects.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use super::component::{SHOWN, StoredComponent};
use crate::matching::{ComponentAssessment, Vulnerability};
use crate::text::advisory_key;

/// Maximum number of matches that are written with one call of the host.
const CHUNK: usize = 1_000;
/// Maximum number of limitations about advisories that are stored with a component.
const MOST_QUESTIONS: usize = 50;

/// A match of a component with one name of an advisory that affects it.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// The matched vulnerability; only set if the component does not store all its advisories, and
    /// only in the match with the advisory's id, not in those with its other names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) vulnerability: Option<Vulnerability>,
}

document!(StoredMatch, "matches");

/// Returns the document id of the match of a component with an advisory name.
pub(crate) fn id(component_id: &str, advisory_key: &str) -> String {
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
            vulnerability: None,
        }
    }
}

/// Returns the matches of a component with all names of these vulnerabilities, each with its
/// document id.
fn matches_of(
    component_id: &str,
    component: &StoredComponent,
    vulnerabilities: &[Vulnerability],
) -> Vec<(String, StoredMatch)> {
    let mut matches = Vec::new();
    for vulnerability in vulnerabilities {
        let own_key = advisory_key(&vulnerability.entry.advisory_id);
        for name in &vulnerability.names {
            let mut found = StoredMatch::new(component_id, component, name.clone());
            if component.advisory_count.is_some() && *name == own_key {
                found.vulnerability = Some(vulnerability.clone());
            }
            matches.push((id(component_id, name), found));
        }
    }
    matches
}

/// Sets a component's advisories and limitations to the result of an assessment. Returns whether
/// the component changed.
pub(crate) fn apply(component: &mut StoredComponent, assessment: &ComponentAssessment) -> bool {
    let all = assessment.vulnerabilities.len();
    let entries = most_severe(&assessment.vulnerabilities);
    let entries = entries.into_iter().map(|found| found.entry.clone()).collect();
    let (keys, count) = match all {
        0..=SHOWN => (assessment.names().into_iter().cloned().collect(), None),
        _ => (Vec::new(), Some(all)),
    };
    let questions = bounded_questions(&assessment.limitations);
    let changed = component.advisories != entries
        || component.advisory_keys != keys
        || component.advisory_count != count
        || component.open_questions != questions
        || !component.ended.iter().eq(&assessment.ended);
    component.advisories = entries;
    component.advisory_keys = keys;
    component.advisory_count = count;
    component.open_questions = questions;
    component.ended = assessment.ended.iter().cloned().collect();
    changed
}

/// Returns the most severe of a component's vulnerabilities, as many as a component stores, ordered
/// by advisory id.
fn most_severe(all: &[Vulnerability]) -> Vec<&Vulnerability> {
    let mut found: Vec<&Vulnerability> = all.iter().collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.severity));
    found.truncate(SHOWN);
    found.sort_by(|a, b| a.entry.advisory_id.cmp(&b.entry.advisory_id));
    found
}

fn bounded_questions(limitations: &BTreeSet<String>) -> Vec<String> {
    let mut questions: Vec<String> = limitations.iter().take(MOST_QUESTIONS).cloned().collect();
    let rest = limitations.len() - questions.len();
    if rest > 0 {
        questions.push(format!("{rest} more limitations of this kind are not listed."));
    }
    questions
}

/// Stores the matches of new components. Each item has a component's document id, the component and
/// its vulnerabilities.
pub(crate) fn create<'a>(
    scope: &Scope,
    components: impl IntoIterator<Item = (&'a str, &'a StoredComponent, &'a [Vulnerability])>,
) -> Result<(), DocumentError> {
    let mut matches = Vec::new();
    for (component_id, component, vulnerabilities) in components {
        for some in vulnerabilities.chunks(CHUNK / 4) {
            matches.append(&mut matches_of(component_id, component, some));
            if matches.len() >= CHUNK {
                create_all(scope, &std::mem::take(&mut matches))?;
            }
        }
    }
    create_all(scope, &matches)
}

fn create_all(scope: &Scope, matches: &[(String, StoredMatch)]) -> Result<(), DocumentError> {
    if matches.is_empty() {
        return Ok(());
    }
    scope.documents().create_all(matches.iter().map(|(id, found)| (id, found)))
}

/// Stores the matches of a component with some vulnerabilities; they may exist already. Returns the
/// advisory names of the matches that existed.
pub(crate) fn put(
    scope: &Scope,
    component: &Stored<StoredComponent>,
    vulnerabilities: &[Vulnerability],
) -> Result<BTreeSet<String>, DocumentError> {
    let documents = scope.documents::<StoredMatch>();
    let mut known = BTreeSet::new();
    let wanted = matches_of(&component.id, component, vulnerabilities);
    for chunk in wanted.chunks(CHUNK) {
        let mut found = documents.get_many(chunk.iter().map(|(id, _)| id))?;
        known.extend(found.iter().map(|found| found.advisory_key.clone()));
        let (changed, new): (Vec<_>, Vec<_>) =
            chunk.iter().partition(|(_, wanted)| known.contains(&wanted.advisory_key));
        documents.create_all(new.into_iter().map(|(id, wanted)| (id, wanted)))?;
        let mut wanted: BTreeMap<&String, &StoredMatch> =
            changed.into_iter().map(|(id, wanted)| (id, wanted)).collect();
        found.retain_mut(|found| match wanted.remove(&found.id) {
            Some(wanted) if *wanted != found.value => {
                found.value = wanted.clone();
                true
            }
            _ => false,
        });
        documents.replace_all(&found)?;
    }
    Ok(known)
}

/// Replaces a component's matches by those of an assessment. `before` has the advisory names of the
/// stored matches, sorted.
pub(crate) fn renew(
    scope: &Scope,
    component: &Stored<StoredComponent>,
    before: &[String],
    assessment: &ComponentAssessment,
) -> Result<(), DocumentError> {
    let now = assessment.names();
    let documents = scope.documents::<StoredMatch>();
    let gone = before.iter().filter(|key| !now.contains(key));
    let gone: Vec<String> = gone.map(|key| id(&component.id, key)).collect();
    for gone in gone.chunks(CHUNK) {
        documents.delete_all(&documents.get_many(gone)?)?;
    }
    if component.advisory_count.is_some() {
        return put(scope, component, &assessment.vulnerabilities).map(drop);
    }
    let mut added = matches_of(&component.id, component, &assessment.vulnerabilities);
    added.retain(|(_, found)| before.binary_search(&found.advisory_key).is_err());
    documents.create_all(added.iter().map(|(id, found)| (id, found)))
}

/// Returns the number of documents that [`renew`] reads and writes.
pub(crate) fn renewal_cost(
    component: &StoredComponent,
    before: &[String],
    assessment: &ComponentAssessment,
) -> usize {
    let now = assessment.names();
    let gone = before.iter().filter(|key| !now.contains(key)).count();
    let kept = before.len() - gone;
    let replaced = if component.advisory_count.is_some() { 2 * kept } else { 0 };
    2 * gone + replaced + (now.len() - kept)
}

/// Returns the advisory names in a component's matches, sorted. Reads the matches only if the
/// component has more advisories than it stores.
pub(crate) fn keys(
    scope: &Scope,
    component: &Stored<StoredComponent>,
) -> Result<Vec<String>, DocumentError> {
    if component.advisory_count.is_none() {
        return Ok(component.advisory_keys.clone());
    }
    let matches = scope.documents::<StoredMatch>().query();
    let matches = matches.equals("component_id", &component.id).ascending("advisory_key");
    matches.limit(1_000).all().map(|found| Ok(found?.value.advisory_key)).collect()
}

/// Returns the number of documents that [`keys`] reads.
pub(crate) fn keys_cost(
    scope: &Scope,
    component: &Stored<StoredComponent>,
) -> Result<usize, DocumentError> {
    if component.advisory_count.is_none() {
        return Ok(0);
    }
    let matches = scope.documents::<StoredMatch>().query();
    let count = matches.equals("component_id", &component.id).count()?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}
