//! Taking advisories in: the newer of two wins, the same one changes nothing.

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Later, Scope};

use super::document::{AdvisoryName, AffectedPackage, StoredAdvisory};
use super::mentions;
use crate::osv::{Osv, Rating};
use crate::reevaluate::Reevaluate;

/// What became of an advisory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// It was not known.
    Created,
    /// It is newer than what was known.
    Updated,
    /// It was known, or something newer.
    Unchanged,
}

/// Told when an advisory was imported and is new, or newer than before.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AdvisoryImported {
    advisory_id: String,
    aliases: Vec<String>,
    severity: Option<Rating>,
    modified: Timestamp,
    withdrawn: Option<Timestamp>,
    change: Change,
    /// How many packages it affects.
    package_count: usize,
}

impl Event for AdvisoryImported {
    const NAME: &'static str = "advisory.imported";
}

/// What changed, so that components must be looked at again.
#[derive(Default)]
pub(crate) struct Changed {
    packages: BTreeSet<String>,
    names: BTreeSet<String>,
}

impl Changed {
    /// Has the components looked at again, after the commit.
    ///
    /// # Errors
    /// When the call's limits are used up.
    pub(crate) fn settle(self, scope: &Scope) -> Result<(), DocumentError> {
        mentions::ensure(scope)?;
        if !self.packages.is_empty() || !self.names.is_empty() {
            let job = Reevaluate::new(self.packages, self.names);
            scope.enqueue_with(&job, Later::default());
        }
        Ok(())
    }
}

/// Documents that keeping an advisory reads and writes, at most: itself and its
/// names twice; the packages that it affects and the names that it mentions,
/// and as many of the one before twice.
pub(crate) fn cost(osv: &Osv) -> usize {
    let mentions = osv.upstream.len() + osv.related.len();
    2 + 2 * (1 + osv.aliases.len()) + 3 * (osv.affected.len() + mentions)
}

/// Keeps an advisory, of whose text this is the digest.
pub(crate) fn keep(
    scope: &Scope,
    osv: Osv,
    sha256: &str,
    changed: &mut Changed,
) -> Result<Change, DocumentError> {
    let new = StoredAdvisory::new(osv, sha256.to_owned());
    let before = scope.documents::<StoredAdvisory>().find(&new.advisory_id)?;
    let change = match &before {
        Some(old) if old.artifact_sha256 == new.artifact_sha256 || old.modified > new.modified => {
            return Ok(Change::Unchanged);
        }
        Some(_) => Change::Updated,
        None => Change::Created,
    };
    keep_packages(scope, &new, before.as_ref(), changed)?;
    keep_names(scope, &new, before.as_ref(), changed)?;
    mentions::keep(scope, &new, before.as_ref())?;
    tell(scope, &new, change);
    match before {
        Some(mut old) => {
            old.value = new;
            scope.documents().replace(&mut old)?;
        }
        None => scope.documents().create(&new.advisory_id, &new)?,
    }
    Ok(change)
}

fn tell(scope: &Scope, new: &StoredAdvisory, change: Change) {
    scope.publish(AdvisoryImported {
        advisory_id: new.advisory_id.clone(),
        aliases: new.aliases.clone(),
        severity: new.severity,
        modified: new.modified,
        withdrawn: new.withdrawn,
        change,
        package_count: new.affected.len(),
    });
}

fn keep_packages(
    scope: &Scope,
    new: &StoredAdvisory,
    before: Option<&Stored<StoredAdvisory>>,
    changed: &mut Changed,
) -> Result<(), DocumentError> {
    let documents = scope.documents::<AffectedPackage>();
    if let Some(before) = before {
        let ids: Vec<String> = before.packages().into_iter().map(|(id, _)| id).collect();
        let old = documents.get_many(ids)?;
        changed.packages.extend(old.iter().map(|package| package.package_key.clone()));
        documents.delete_all(&old)?;
    }
    let packages = new.packages();
    changed.packages.extend(packages.iter().map(|(_, package)| package.package_key.clone()));
    documents.create_all(packages.iter().map(|(id, package)| (id, package)))
}

/// Notes the advisory under each of its names, and under none it had before.
fn keep_names(
    scope: &Scope,
    new: &StoredAdvisory,
    before: Option<&Stored<StoredAdvisory>>,
    changed: &mut Changed,
) -> Result<(), DocumentError> {
    let old: BTreeSet<String> =
        before.map(|old| old.name_keys()).unwrap_or_default().into_iter().collect();
    let now: BTreeSet<String> = new.name_keys().into_iter().collect();
    for key in old.union(&now) {
        let found = scope.documents::<AdvisoryName>().find(key)?;
        let mut value = found.as_ref().map(|name| name.value.clone()).unwrap_or_default();
        value.advisories.retain(|named| named.advisory_id != new.advisory_id);
        if now.contains(key) {
            value.advisories.push(new.named());
        }
        match found {
            Some(mut name) => {
                name.value = value;
                scope.documents().replace(&mut name)?;
            }
            None => scope.documents().create(key, &value)?,
        }
    }
    changed.names.extend(old);
    changed.names.extend(now);
    Ok(())
}
