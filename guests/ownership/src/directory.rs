//! Resolves names in a CODEOWNERS file to users.
//!
//! A group with the name among its identities comes first. Then an e-mail address means the member
//! with this address, and `@name` the member whose address starts with the name. Case is ignored. A
//! name with several meanings resolves to nobody.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::catalog::{Group, Service};

use crate::catalog;
use crate::codeowners::{Identity, email_local_part};

/// Users that a name stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct People {
    /// User who is assigned.
    pub(crate) assignee: Uuid,
    /// Users of whom each counts as an owner.
    pub(crate) all: Vec<Uuid>,
}

/// Members of a group that the assignment needs.
struct Team {
    name: String,
    members: Vec<Uuid>,
    /// Owner of one of the group's services that are built from the repository.
    service_owner: Option<Uuid>,
}

/// Names that a workspace knows.
pub(crate) struct Directory {
    by_email: BTreeMap<String, Uuid>,
    by_local_part: BTreeMap<String, Vec<Uuid>>,
    teams: Vec<Team>,
    /// Indexes in `teams`.
    by_identity: BTreeMap<String, Vec<usize>>,
    /// Services built from the repository.
    pub(crate) service_ids: Vec<Uuid>,
}

impl Directory {
    /// Reads the names for one repository.
    pub(crate) fn load(scope: &Scope, repository_id: Uuid) -> Result<Self, DocumentError> {
        let mut services = catalog::all::<Service>(scope)?;
        services.retain(|service| service.repository_ids.contains(&repository_id));
        let mut directory = Self {
            by_email: BTreeMap::new(),
            by_local_part: BTreeMap::new(),
            teams: Vec::new(),
            by_identity: BTreeMap::new(),
            service_ids: services.iter().map(Stored::uuid).collect(),
        };
        directory.add_members(scope);
        for group in catalog::all::<Group>(scope)? {
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
        }
    }

    fn is_member(&self, user: Uuid) -> bool {
        self.by_email.values().any(|member| *member == user)
    }

    fn add_group(&mut self, group: &Stored<Group>, services: &[Stored<Service>]) {
        let id = group.uuid();
        let owners = services.iter().filter(|service| service.group_id == Some(id));
        let service_owner =
            owners.filter_map(|service| service.owner_id).find(|owner| self.is_member(*owner));
        let members = group.member_ids.iter().copied().filter(|id| self.is_member(*id)).collect();
        for identity in &group.identities {
            let place = self.teams.len();
            self.by_identity.entry(identity.to_lowercase()).or_default().push(place);
        }
        self.teams.push(Team { name: group.name.clone(), members, service_owner });
    }

    /// Returns the users for a name, or why there are none.
    pub(crate) fn people(&self, name: &str) -> Result<People, String> {
        let lower = name.to_lowercase();
        match self.by_identity.get(&lower).map(Vec::as_slice) {
            Some([place]) => return team_people(&self.teams[*place], name),
            Some(_) => return Err(format!("several groups have the identity {name}")),
            None => {}
        }
        match Identity::read(&lower) {
            Some(Identity::Email(email)) => one(self.by_email.get(email).into_iter(), name),
            Some(Identity::Name(local)) => {
                one(self.by_local_part.get(local).into_iter().flatten(), name)
            }
            Some(Identity::Role(_)) => {
                Err(format!("{name} is a role, which only GitLab can resolve"))
            }
            _ => Err(format!("no group has the identity {name}")),
        }
    }
}

fn team_people(team: &Team, name: &str) -> Result<People, String> {
    let assignee = team.service_owner.or_else(|| team.members.first().copied());
    match assignee {
        Some(assignee) => {
            let mut all = team.members.clone();
            all.push(assignee);
            Ok(People { assignee, all })
        }
        None => Err(format!("the group {}, which is {name}, has no members", team.name)),
    }
}

fn one<'a>(mut users: impl Iterator<Item = &'a Uuid>, name: &str) -> Result<People, String> {
    match (users.next(), users.next()) {
        (Some(user), None) => Ok(People { assignee: *user, all: vec![*user] }),
        (Some(_), Some(_)) => Err(format!("several members may be {name}")),
        _ => Err(format!("neither a group nor a member is {name}")),
    }
}
