//! The people of the workspace.

use super::UnitOfWork;
use super::reading::What;
use crate::domain::id::UserId;
use crate::domain::people::Member;
use crate::store::{Error, memberships, workspaces};

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
        found.map(|workspace| (workspace.name, workspace.slug)).ok_or(Error::NotFound)
    }
}
