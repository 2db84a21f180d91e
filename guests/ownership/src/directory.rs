//! Resolves owners in a CODEOWNERS file to users.
//!
//! An owner resolves to the group that has the name in `identities`. Otherwise an e-mail address
//! resolves to the member with this address, and `@name` to the member whose address has `name`
//! before the `@`. Case is ignored. A name that resolves to several users or groups is an error.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::catalog::{Service, UserGroup};

use crate::catalog;
use crate::codeowners::{OwnerReference, email_local_part};

/// Users to whom the name of an owner in a CODEOWNERS file resolves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ResolvedOwner {
    /// User to whom findings of this owner are assigned.
    pub(crate) assignee: Uuid,
    /// Ids of all users that the owner's name stands for.
    pub(crate) all: Vec<Uuid>,
}

/// A group of users to which an owner's name can resolve.
struct Team {
    name: String,
    members: Vec<Uuid>,
    /// User who owns one of the group's services that are built from the repository.
    service_owner: Option<Uuid>,
}

/// Users and groups of the workspace, by the names that CODEOWNERS files use.
pub(crate) struct OwnerDirectory {
    members: BTreeSet<Uuid>,
    by_email: BTreeMap<String, Uuid>,
    by_local_part: BTreeMap<String, Vec<Uuid>>,
    teams: Vec<Team>,
    /// Indexes of groups in `teams`, by their names in `identities`.
    by_identity: BTreeMap<String, Vec<usize>>,
    /// Ids of the services that are built from the repository.
    pub(crate) service_ids: Vec<Uuid>,
}

impl OwnerDirectory {
    /// Loads the users and groups that CODEOWNERS rules of one repository can name.
    pub(crate) fn load(scope: &Scope, repository_id: Uuid) -> Result<Self, DocumentError> {
        let mut services = catalog::all::<Service>(scope)?;
        services.retain(|service| service.repository_ids.contains(&repository_id));
        let mut directory = Self {
            members: BTreeSet::new(),
            by_email: BTreeMap::new(),
            by_local_part: BTreeMap::new(),
            teams: Vec::new(),
            by_identity: BTreeMap::new(),
            service_ids: services.iter().map(Stored::uuid).collect(),
        };
        directory.add_members(scope);
        for group in catalog::all::<UserGroup>(scope)? {
            directory.add_group(&group, &services);
        }
        Ok(directory)
    }

    fn add_members(&mut self, scope: &Scope) {
        for person in scope.members() {
            let Ok(user) = person.user.parse() else { continue };
            let email = person.email.to_lowercase();
            if let Some(local) = email_local_part(&email) {
                self.by_local_part.entry(local.to_owned()).or_default().push(user);
            }
            self.by_email.insert(email, user);
            self.members.insert(user);
        }
    }

    fn is_member(&self, user: Uuid) -> bool {
        self.members.contains(&user)
    }

    fn add_group(&mut self, group: &Stored<UserGroup>, services: &[Stored<Service>]) {
        let id = group.uuid();
        let owners = services.iter().filter(|service| service.group_id == Some(id));
        let service_owner =
            owners.filter_map(|service| service.owner_id).find(|owner| self.is_member(*owner));
        let members = group.member_ids.iter().copied().filter(|id| self.is_member(*id)).collect();
        let place = self.teams.len();
        for identity in &group.identities {
            let places = self.by_identity.entry(identity.to_lowercase()).or_default();
            // A group may have a name in two spellings.
            if places.last() != Some(&place) {
                places.push(place);
            }
        }
        self.teams.push(Team { name: group.name.clone(), members, service_owner });
    }

    /// Returns the users to whom an owner's name resolves. The error is a reason for the client.
    pub(crate) fn people(&self, name: &str) -> Result<ResolvedOwner, String> {
        let lower = name.to_lowercase();
        match self.by_identity.get(&lower).map(Vec::as_slice) {
            Some([place]) => return team_people(&self.teams[*place], name),
            Some(_) => return Err(format!("several groups have the identity {name}")),
            None => {}
        }
        match OwnerReference::read(&lower) {
            Some(OwnerReference::Email(email)) => one(self.by_email.get(email).into_iter(), name),
            Some(OwnerReference::Name(local)) => {
                one(self.by_local_part.get(local).into_iter().flatten(), name)
            }
            Some(OwnerReference::Role(_)) => {
                Err(format!("{name} is a role, which only GitLab can resolve"))
            }
            _ => Err(format!("no group has the identity {name}")),
        }
    }
}

fn team_people(team: &Team, name: &str) -> Result<ResolvedOwner, String> {
    let assignee = team.service_owner.or_else(|| team.members.first().copied());
    match assignee {
        Some(assignee) => {
            let mut all = team.members.clone();
            all.push(assignee);
            Ok(ResolvedOwner { assignee, all })
        }
        None => Err(format!("the group {}, which is {name}, has no members", team.name)),
    }
}

fn one<'a>(mut users: impl Iterator<Item = &'a Uuid>, name: &str) -> Result<ResolvedOwner, String> {
    match (users.next(), users.next()) {
        (Some(user), None) => Ok(ResolvedOwner { assignee: *user, all: vec![*user] }),
        (Some(_), Some(_)) => Err(format!("several members may be {name}")),
        _ => Err(format!("neither a group nor a member is {name}")),
    }
}
