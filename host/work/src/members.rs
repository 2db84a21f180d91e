//! Reads and adds members of the call's workspace.

use super::error::READ_ONLY;
use super::reading::ReadKind;
use super::{HostCallError, MembershipError, UnitOfWork};
use assurance_core::domain::id::UserId;
use assurance_core::domain::people::{Member, User};
use assurance_core::domain::role::Role;
use assurance_core::domain::time::Timestamp;
use assurance_identity::{is_email, normalize_email, vouch};
use assurance_store::{Error, memberships, users, workspaces};

/// Maximum lifetime of a voucher for an email address: 30 days, in
/// milliseconds.
const MAX_VOUCHER_MS: i64 = 30 * 86_400_000;

type MembershipHostCallResult<T> = Result<T, HostCallError<MembershipError>>;

impl UnitOfWork {
    /// Returns a member of the call's workspace; `None` if the user is not a
    /// member.
    pub async fn member(&mut self, user: UserId) -> Result<Option<Member>, Error> {
        let workspace = self.spec.call.workspace;
        self.read(ReadKind::Other, async |c| memberships::member(c, workspace, user).await).await
    }

    /// Returns all members of the call's workspace, ordered by email address.
    pub async fn members(&mut self) -> Result<Vec<Member>, Error> {
        let workspace = self.spec.call.workspace;
        self.read(ReadKind::Other, async |c| memberships::members(c, workspace).await).await
    }

    /// Returns name and slug of the call's workspace.
    pub async fn workspace(&mut self) -> Result<(String, String), Error> {
        let workspace = self.spec.call.workspace;
        let found =
            self.read(ReadKind::Other, async |c| workspaces::find(c, workspace).await).await?;
        found.map(|workspace| (workspace.name, workspace.slug)).ok_or(Error::WorkspaceGone)
    }

    /// Returns the account with this email address, whether or not the user is
    /// a member of the workspace; `None` if there is none.
    pub async fn account(&mut self, email: &str) -> Result<Option<User>, Error> {
        let email = normalize_email(email);
        let found = self.read(ReadKind::Other, async |c| users::by_email(c, &email).await).await?;
        Ok(found.map(|(user, _)| user))
    }

    /// Adds a user to the call's workspace when the call commits. An existing
    /// member keeps a higher role.
    pub async fn add_member(&mut self, user: UserId, role: Role) -> MembershipHostCallResult<()> {
        if !self.spec.writes {
            return misuse(READ_ONLY);
        }
        let found = self.read(ReadKind::Other, async |c| users::find(c, user).await).await?;
        if found.is_none() {
            return Err(HostCallError::Refused(MembershipError::NoSuchUser));
        }
        self.check_may_add(user, role).await?;
        self.new_members.push((user, role));
        Ok(())
    }

    /// Checks that the caller does not grant a higher role than its own. A
    /// request by signed link may add only its own user.
    async fn check_may_add(&mut self, user: UserId, role: Role) -> MembershipHostCallResult<()> {
        let Some(caller) = self.spec.actor else {
            return misuse(
                "a job cannot add a member, because it has no caller whose role could be checked",
            );
        };
        if self.spec.by_link {
            if user == caller {
                return Ok(());
            }
            return misuse("a request by signed link can add only its own user as a member");
        }
        let own = self.member(caller).await?.map(|member| member.role);
        match own {
            Some(own) if role <= own => Ok(()),
            own => {
                let own = own.map_or("no member".to_owned(), |own| format!("in the role {own}"));
                misuse(format!("the caller is {own} and cannot add a member as {role}"))
            }
        }
    }

    /// Returns a token that permits its holder to create an account with this
    /// email address.
    pub fn vouch(&self, email: &str, expires_at: Timestamp) -> MembershipHostCallResult<String> {
        if !is_email(&normalize_email(email)) {
            return misuse(format!("{email:?} is not an email address"));
        }
        if expires_at > self.spec.call.now.plus_ms(MAX_VOUCHER_MS) {
            return misuse("a voucher can be valid for at most 30 days");
        }
        Ok(vouch(&self.keys, email, expires_at))
    }
}

fn misuse<T>(what: impl Into<String>) -> MembershipHostCallResult<T> {
    Err(HostCallError::Refused(MembershipError::Misuse(what.into())))
}
