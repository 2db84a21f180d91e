//! Revisions: numbers of changes that affect the assessment of large components. A package's
//! revision is a document; a component's is a member of the component.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobOptions, Scope};

use super::rescan::LargeReassessmentJob;
use crate::documents::put;
use crate::inventory::component::StoredComponent;

/// Target of a reassessment in several steps: one component, or all latest components of a package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Subject")]
pub(crate) enum ReassessmentTarget {
    /// All latest components of the package with this key.
    Package(String),
    /// The component with this id.
    Component(String),
}

/// Number of changes that require a new assessment of a package's large components; the document's
/// id is the SHA-256 of the package key.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PackageRevision")]
pub(crate) struct PackageAdvisoryRevision {
    package_key: String,
    revision: u64,
}

document!(PackageAdvisoryRevision, "package_revisions");

fn id(scope: &Scope, package_key: &str) -> String {
    scope.sha256_hex(package_key.as_bytes())
}

/// Increases the revision of a package by `by`. With 0, writes it unchanged.
fn write(scope: &Scope, package_key: &str, by: u64) -> Result<(), DocumentError> {
    let id = id(scope, package_key);
    let known = scope.documents::<PackageAdvisoryRevision>().find(&id)?;
    let revision = known.as_ref().map_or(0, |known| known.revision) + by;
    let new = PackageAdvisoryRevision { package_key: package_key.to_owned(), revision };
    put(scope, &id, known, new)
}

/// Increments the revision of a component or package, and enqueues the job that assesses it again.
pub(crate) fn raise(scope: &Scope, subject: ReassessmentTarget) -> Result<(), DocumentError> {
    let dedupe_key = match &subject {
        ReassessmentTarget::Package(key) => {
            write(scope, key, 1)?;
            id(scope, key)
        }
        ReassessmentTarget::Component(component_id) => {
            let component = scope.documents::<StoredComponent>().find(component_id)?;
            let Some(mut component) = component else { return Ok(()) };
            component.revision = Some(component.revision.unwrap_or_default() + 1);
            if component.unfinished {
                // The component's import has not ended and checks the revision itself.
                return scope.documents().replace(&mut component);
            }
            scope.documents().replace(&mut component)?;
            component_id.clone()
        }
    };
    let later = JobOptions { at: None, resource: None, dedupe_key: Some(dedupe_key) };
    scope.enqueue_with(&LargeReassessmentJob::new(subject), later);
    Ok(())
}

/// Returns the revision of a component or package; 0 if it never changed.
pub(super) fn of(scope: &Scope, subject: &ReassessmentTarget) -> Result<u64, DocumentError> {
    match subject {
        ReassessmentTarget::Package(key) => {
            let known = scope.documents::<PackageAdvisoryRevision>().find(id(scope, key))?;
            Ok(known.map_or(0, |known| known.revision))
        }
        ReassessmentTarget::Component(id) => {
            let component = scope.documents::<StoredComponent>().find(id)?;
            Ok(component.map_or(0, |component| component.revision.unwrap_or_default()))
        }
    }
}

/// Returns the sum of the component's revision and its package's revision.
pub(super) fn current(scope: &Scope, component: &StoredComponent) -> Result<u64, DocumentError> {
    let package = component.package_key.clone().map(ReassessmentTarget::Package);
    let own = component.revision.unwrap_or_default();
    Ok(own + package.map_or(Ok(0), |package| of(scope, &package))?)
}

/// Whether the component or package still has this revision. If so, writes the revision again, so
/// that a concurrent change of it conflicts with this call.
pub(super) fn hold(
    scope: &Scope,
    subject: &ReassessmentTarget,
    revision: u64,
) -> Result<bool, DocumentError> {
    if of(scope, subject)? != revision {
        return Ok(false);
    }
    match subject {
        ReassessmentTarget::Package(key) => write(scope, key, 0)?,
        ReassessmentTarget::Component(id) => {
            if let Some(mut component) = scope.documents::<StoredComponent>().find(id)? {
                scope.documents().replace(&mut component)?;
            }
        }
    }
    Ok(true)
}
