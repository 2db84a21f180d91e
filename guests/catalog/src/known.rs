//! Resolves names in evidence to repositories, services, groups and users of the workspace. A few
//! queries resolve all names of a page of records.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::catalog::resolve;

use crate::groups::UserGroup;
use crate::repositories::Repository;
use crate::services::Service;

/// Maximum number of names in one database query.
const NAMES: usize = 500;

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
        Ok(Self {
            services: services.map(|service| (service.name.clone(), service)).collect(),
            repositories,
            groups: referred::<UserGroup>(scope, &groups, |found| &found.name)?,
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

/// Returns the documents that have one of these names.
fn named<T: Document>(
    scope: &Scope,
    names: &BTreeSet<&str>,
) -> Result<Vec<Stored<T>>, DocumentError> {
    let names: Vec<&str> = names.iter().copied().collect();
    let mut found = Vec::new();
    for names in names.chunks(NAMES) {
        let query = scope.documents::<T>().query().one_of("name", names.iter().copied());
        found.extend(query.limit(1000).list()?);
    }
    Ok(found)
}

/// Returns the ids of the documents that have one of these names or ids, by id and by name.
fn referred<T: Document>(
    scope: &Scope,
    references: &BTreeSet<&str>,
    name: fn(&T) -> &String,
) -> Result<BTreeMap<String, Uuid>, DocumentError> {
    let ids = references.iter().filter_map(|text| text.parse::<Uuid>().ok());
    let by_id = scope.documents::<T>().get_many(ids)?;
    let by_id = by_id.iter().map(|found| (found.id.clone(), found.uuid()));
    let by_name = named::<T>(scope, references)?;
    let by_name = by_name.iter().map(|found| (name(found).clone(), found.uuid()));
    Ok(by_id.chain(by_name).collect())
}

fn people(scope: &Scope) -> BTreeMap<String, Uuid> {
    let people = scope.members().into_iter();
    let known = people.filter_map(|person| Some((person.user.parse().ok()?, person)));
    known.flat_map(|(id, person)| [(person.user, id), (person.email.to_lowercase(), id)]).collect()
}
