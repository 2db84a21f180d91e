//! Imports advisories. A record replaces a stored one that is older, or that an earlier version of
//! the code stored.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobOptions, Scope};

use super::document::{AdvisoriesWithName, AffectedPackage, StoredAdvisory};
use super::mentions;
use crate::documents::put;
use crate::osv::{Osv, SeverityBand};
use crate::reevaluate::ReevaluationJob;

/// Effect of an imported OSV record on the stored advisory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ImportEffect {
    /// The advisory was not stored before.
    Created,
    /// The record is newer than the stored advisory, or an earlier version of the code stored that
    /// advisory; the record replaced it.
    Updated,
    /// The same or a newer version of the advisory is stored; nothing changed.
    Unchanged,
}

/// Published when an import created or updated an advisory.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AdvisoryImported {
    advisory_id: String,
    aliases: Vec<String>,
    severity: Option<SeverityBand>,
    modified: Timestamp,
    withdrawn: Option<Timestamp>,
    change: ImportEffect,
    /// Number of `affected` entries in the advisory's OSV record.
    package_count: usize,
}

event!(AdvisoryImported, "advisory.imported");

/// Keys of packages, and advisory names, whose components must be matched with advisories again
/// after an import of advisories.
#[derive(Default)]
pub(crate) struct ReevaluationTargets {
    packages: BTreeSet<String>,
    names: BTreeSet<String>,
    /// Package keys and names of advisories that will be withdrawn at a later time, by that time.
    withdrawn_later: BTreeMap<Timestamp, (BTreeSet<String>, BTreeSet<String>)>,
}

impl ReevaluationTargets {
    /// Enqueues a job that matches the affected components again, and one for each time at which
    /// advisories will be withdrawn.
    ///
    /// # Errors
    /// If the call has reached its limits.
    pub(crate) fn settle(self, scope: &Scope) -> Result<(), DocumentError> {
        mentions::ensure(scope)?;
        let now = std::iter::once((None, (self.packages, self.names)));
        let later = self.withdrawn_later.into_iter().map(|(at, targets)| (Some(at), targets));
        for (at, (packages, names)) in now.chain(later) {
            if !packages.is_empty() || !names.is_empty() {
                let job = ReevaluationJob::new(packages, names);
                scope.enqueue_with(&job, JobOptions { at, ..JobOptions::default() });
            }
        }
        Ok(())
    }

    fn note_withdrawal(&mut self, advisory: &StoredAdvisory, now: Timestamp) {
        let Some(at) = advisory.withdrawn.filter(|at| *at > now) else { return };
        let (packages, names) = self.withdrawn_later.entry(at).or_default();
        packages.extend(advisory.packages().into_iter().map(|(_, package)| package.package_key));
        names.extend(advisory.name_keys());
    }
}

/// Returns the stored advisory with this id; `None` if there is none.
pub(crate) fn stored(
    scope: &Scope,
    advisory_id: &str,
) -> Result<Option<Stored<StoredAdvisory>>, DocumentError> {
    scope.documents::<StoredAdvisory>().find(advisory_id)
}

/// Returns the maximum number of documents that are read and written to store an advisory: itself
/// and its names twice, its affected packages and mentions, and those of its former version
/// (`before`) twice.
pub(crate) fn cost(osv: &Osv, before: Option<&StoredAdvisory>) -> usize {
    let new = osv.affected.len() + osv.upstream.len() + osv.related.len();
    let former = |old: &StoredAdvisory| old.affected.len() + old.upstream.len() + old.related.len();
    let aliases = osv.aliases.len() + before.map_or(0, |old| old.aliases.len());
    2 + 2 * (1 + aliases) + 3 * new.max(before.map_or(0, former))
}

/// Stores an advisory, unless a newer one or, by this version of the code, the same one is stored.
/// `before` is the stored advisory with its id. `sha256` is that of the OSV record's text. Adds to
/// `changed` what must be matched again.
pub(crate) fn keep(
    scope: &Scope,
    (osv, before): (Osv, Option<Stored<StoredAdvisory>>),
    sha256: &str,
    changed: &mut ReevaluationTargets,
) -> Result<ImportEffect, DocumentError> {
    let new = StoredAdvisory::new(osv, sha256.to_owned());
    let is_same = |old: &StoredAdvisory| {
        old.artifact_sha256 == new.artifact_sha256 && old.reader == new.reader
    };
    let change = match &before {
        Some(old) if is_same(old) || old.modified > new.modified => {
            return Ok(ImportEffect::Unchanged);
        }
        Some(_) => ImportEffect::Updated,
        None => ImportEffect::Created,
    };
    keep_packages(scope, &new, before.as_ref(), changed)?;
    keep_names(scope, &new, before.as_ref(), changed)?;
    mentions::keep(scope, &new, before.as_ref())?;
    changed.note_withdrawal(&new, scope.now());
    tell(scope, &new, change);
    put(scope, &new.advisory_id.clone(), before, new)?;
    Ok(change)
}

fn tell(scope: &Scope, new: &StoredAdvisory, change: ImportEffect) {
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
    changed: &mut ReevaluationTargets,
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

/// Adds the advisory to the [`AdvisoriesWithName`] of each of its names, and removes it from the
/// entries of names that it no longer has.
fn keep_names(
    scope: &Scope,
    new: &StoredAdvisory,
    before: Option<&Stored<StoredAdvisory>>,
    changed: &mut ReevaluationTargets,
) -> Result<(), DocumentError> {
    let old: BTreeSet<String> =
        before.map(|old| old.name_keys()).unwrap_or_default().into_iter().collect();
    let now: BTreeSet<String> = new.name_keys().into_iter().collect();
    for key in old.union(&now) {
        let found = scope.documents::<AdvisoriesWithName>().find(key)?;
        let mut value = found.as_ref().map(|name| name.value.clone()).unwrap_or_default();
        value.advisories.retain(|named| named.advisory_id != new.advisory_id);
        if now.contains(key) {
            value.advisories.push(new.named());
        }
        put(scope, key, found, value)?;
    }
    changed.names.extend(old);
    changed.names.extend(now);
    Ok(())
}
