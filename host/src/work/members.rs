//! The people of the workspace.

use super::reading::What;
use super::{Fault, MembershipError, UnitOfWork};
use crate::domain::id::UserId;
use crate::domain::people::{Member, User};
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::identity::{is_email, normalise_email, vouch};
use crate::store::{Error, memberships, users, workspaces};

/// How long a voucher is good at most: 30 days.
const MAX_VOUCHER_MS: i64 = 30 * 86_400_000;

type Answer<T> = Result<T, Fault<MembershipError>>;

impl UnitOfWork {
    /// The member, where the user is one.
    pub async fn member(&mut self, user: UserId) -> Result<Option<Member>, Error> {
        let workspace = self.spec.call.workspace;
        let mut lease = self.lease(What::Other, 1).await?;
        let member = memberships::member(lease.connection(), workspace, user).await?;
        self.done(lease);
        Ok(member)
    }

    /// All members, by e-mail.
    pub async fn members(&mut self) -> Result<Vec<Member>, Error> {
        let workspace = self.spec.call.workspace;
        let mut lease = self.lease(What::Other, 1).await?;
        let members = memberships::members(lease.connection(), workspace).await?;
        self.done(lease);
        Ok(members)
    }

    /// The workspace's name and slug.
    pub async fn workspace(&mut self) -> Result<(String, String), Error> {
        let workspace = self.spec.call.workspace;
        let mut lease = self.lease(What::Other, 1).await?;
        let found = workspaces::find(lease.connection(), workspace).await?;
        self.done(lease);
        found.map(|workspace| (workspace.name, workspace.slug)).ok_or(Error::WorkspaceGone)
    }

    /// Whoever signs in with this address, in any workspace or none.
    pub async fn account(&mut self, email: &str) -> Result<Option<User>, Error> {
        let email = normalise_email(email);
        let mut lease = self.lease(What::Other, 1).await?;
        let found = users::by_email(lease.connection(), &email).await?;
        self.done(lease);
        Ok(found.map(|(user, _)| user))
    }

    /// Makes a person a member with the commit; a member keeps a higher role.
    pub async fn add_member(&mut self, user: UserId, role: Role) -> Answer<()> {
        if !self.spec.writes {
            return misuse("the route writes nothing".to_owned());
        }
        let mut lease = self.lease(What::Other, 1).await?;
        let found = users::find(lease.connection(), user).await?;
        self.done(lease);
        if found.is_none() {
            return Err(Fault::Refused(MembershipError::NoSuchUser));
        }
        self.check_may_add(user, role).await?;
        self.new_members.push((user, role));
        Ok(())
    }

    /// Whoever asks gives no more than they have. A link that was signed for
    /// somebody to join makes its holder a member, and nobody else.
    async fn check_may_add(&mut self, user: UserId, role: Role) -> Answer<()> {
        let Some(caller) = self.spec.actor else {
            return misuse("a job adds no member: it has no caller whose role counts".to_owned());
        };
        if self.spec.by_link {
            if user == caller {
                return Ok(());
            }
            return misuse("a signed link makes its holder a member, and nobody else".to_owned());
        }
        let own = self.member(caller).await?.map(|member| member.role);
        match own {
            Some(own) if role <= own => Ok(()),
            own => {
                let own = own.map_or("no member".to_owned(), |own| format!("in the role {own}"));
                misuse(format!("the caller is {own} and makes nobody {role}"))
            }
        }
    }

    /// A token with which whoever reads the mail of this address can make an
    /// account of it.
    pub fn vouch(&self, email: &str, expires_at: Timestamp) -> Answer<String> {
        if !is_email(&normalise_email(email)) {
            return misuse(format!("{email:?} is no e-mail address"));
        }
        if expires_at > self.spec.call.now.plus_ms(MAX_VOUCHER_MS) {
            return misuse("a voucher is good for 30 days at most".to_owned());
        }
        Ok(vouch(&self.keys, email, expires_at))
    }
}

fn misuse<T>(what: String) -> Answer<T> {
    Err(Fault::Refused(MembershipError::Misuse(what)))
}
