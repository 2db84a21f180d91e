//! Resolves names in evidence to repositories, services, groups and users of the workspace. A few
//! queries resolve all names of a page of records.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::catalog::{named, referred, resolve};

use crate::groups::UserGroup;
use crate::repositories::Repository;
use crate::services::Service;

/// Documents and users to which evidence records refer: services by name; repositories and groups
/// by id and name; users by id and lower-case e-mail.
pub(crate) struct EvidenceNameResolver {
    pub(crate) services: BTreeMap<String, Stored<Service>>,
    repositories: BTreeMap<String, Uuid>,
    groups: BTreeMap<String, Uuid>,
    people: BTreeMap<String, Uuid>,
}

impl EvidenceNameResolver {
    /// Loads the services, repositories and groups with these names or ids, and all users.
    pub(crate) fn load(
        scope: &Scope,
        services: BTreeSet<&str>,
        repositories: BTreeSet<&str>,
        groups: BTreeSet<&str>,
    ) -> Result<Self, DocumentError> {
        let services = named::<Service>(scope, &services)?.into_iter();
        let repositories = referred::<Repository>(scope, &repositories, |found| &found.name)?;
        let groups = referred::<UserGroup>(scope, &groups, |found| &found.name)?;
        Ok(Self {
            services: services.map(|service| (service.name.clone(), service)).collect(),
            repositories: ids(repositories),
            groups: ids(groups),
            people: people(scope),
        })
    }

    pub(crate) fn group(&self, name: &str) -> Option<Uuid> {
        resolve(&self.groups, name).copied()
    }

    pub(crate) fn person(&self, name: &str) -> Option<Uuid> {
        self.people.get(&name.to_lowercase()).copied()
    }

    /// Returns the ids of the repositories with these names or ids, without duplicates. Ignores
    /// unknown ones.
    pub(crate) fn repositories(&self, names: &[String]) -> Vec<Uuid> {
        let known = names.iter().filter_map(|name| resolve(&self.repositories, name));
        known.copied().collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Replaces documents by their ids.
fn ids<T>(found: BTreeMap<String, Stored<T>>) -> BTreeMap<String, Uuid> {
    found.into_iter().map(|(reference, found)| (reference, found.uuid())).collect()
}

fn people(scope: &Scope) -> BTreeMap<String, Uuid> {
    let people = scope.members().into_iter();
    let known = people.filter_map(|person| Some((person.user.parse().ok()?, person)));
    known.flat_map(|(id, person)| [(person.user, id), (person.email.to_lowercase(), id)]).collect()
}
