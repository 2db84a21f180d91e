//! Listing and removing members of a workspace.

use super::{IdentityService, TokenPrincipal};
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::people::Member;
use assurance_core::domain::role::Role;
use assurance_core::domain::time::Timestamp;
use assurance_store::idempotency::{self, StoredReply};
use assurance_store::{self as store, TransactionAccess, Tx, memberships};

/// Reason why a member was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveMemberError {
    /// The caller or the person to remove is not a member.
    #[error("the person is not a member of the workspace")]
    NotAMember,
    /// Only admins can remove others, and only owners can remove an owner.
    #[error("removing this member needs the role {needed}, and the caller's is {own}")]
    RoleTooLow {
        /// The caller's role.
        own: Role,
        /// Lowest role that may remove this member.
        needed: Role,
    },
    /// The workspace has no other owner who can sign in.
    #[error("the person is the last owner of the workspace; make another member an owner first")]
    LastOwner,
    /// An error of the store, such as an unavailable database.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl IdentityService {
    /// Returns one page of a workspace's members with their time of joining,
    /// ordered by email, and the next page's cursor.
    ///
    /// # Errors
    /// [`store::Error::InvalidCursor`] for a cursor of another list.
    pub async fn members_of(
        &self,
        workspace: WorkspaceId,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<(Member, Timestamp)>, Option<String>), store::Error> {
        let key = self.0.keys.derive("query cursor");
        let store = &self.0.store;
        store.read(async |c| memberships::page(c, workspace, cursor, limit, &key).await).await
    }

    /// Removes a member on behalf of an operator.
    ///
    /// # Errors
    /// [`RemoveMemberError::NotAMember`], [`RemoveMemberError::LastOwner`], or
    /// an error of the store.
    pub async fn remove_member(
        &self,
        workspace: WorkspaceId,
        user: UserId,
    ) -> Result<(), RemoveMemberError> {
        self.remove_once(workspace, user, None, None).await.map(drop)
    }

    /// Removes a member on behalf of another one, who may be the same person,
    /// and stores the reply for the idempotency key. Roles are read from the
    /// database, not from the cache. On this node the membership ends at once,
    /// on others within `session.cache_ms`.
    ///
    /// # Errors
    /// See [`RemoveMemberError`]; [`store::Error::KeyTaken`] if the reply's key
    /// already has a response.
    pub async fn remove_member_by(
        &self,
        caller: UserId,
        workspace: WorkspaceId,
        user: UserId,
        reply: Option<StoredReply>,
    ) -> Result<(), RemoveMemberError> {
        let role = self.remove_once(workspace, user, Some(caller), reply).await?;
        tracing::info!(
            target: "security",
            event = "member_removed",
            workspace.id = %workspace,
            user.id = %caller,
            member.id = %user,
            %role,
            "member removed"
        );
        Ok(())
    }

    /// Removes the member in one transaction. Returns the role that the person
    /// had.
    async fn remove_once(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        caller: Option<UserId>,
        reply: Option<StoredReply>,
    ) -> Result<Role, RemoveMemberError> {
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        let theirs = memberships::lock_role(&mut tx, workspace, user).await?;
        if let Some(caller) = caller {
            check_caller(&mut tx, workspace, caller, (user, theirs)).await?;
        }
        if is_last_owner(&mut tx, workspace, user, theirs).await? {
            return Err(RemoveMemberError::LastOwner);
        }
        let theirs = theirs.ok_or(RemoveMemberError::NotAMember)?;
        memberships::remove(&mut tx, workspace, user).await?;
        if let Some(reply) = reply {
            idempotency::keep(&mut tx, reply, self.0.clock.now()).await?;
        }
        tx.commit().await?;
        self.0.memberships.invalidate(&(user, workspace));
        // Deleting the membership has also deleted the person's access tokens
        // of this workspace.
        let theirs_here =
            |token: &TokenPrincipal| token.user.id == user && token.token.workspace == workspace;
        self.0.tokens.invalidate_where(|_, known| theirs_here(known));
        Ok(theirs)
    }
}

/// Returns whether a member with this role is an owner, and no other owner can
/// sign in. The transaction must have read the role with
/// [`memberships::lock_role`].
pub(super) async fn is_last_owner(
    tx: &mut Tx,
    workspace: WorkspaceId,
    user: UserId,
    role: Option<Role>,
) -> Result<bool, store::Error> {
    Ok(role == Some(Role::Owner) && !memberships::has_other_owner(tx, workspace, user).await?)
}

/// Checks the caller's role: members may always leave; removing somebody else
/// requires the role admin, and at least the other person's role.
async fn check_caller(
    tx: &mut Tx,
    workspace: WorkspaceId,
    caller: UserId,
    (user, theirs): (UserId, Option<Role>),
) -> Result<(), RemoveMemberError> {
    let own = memberships::find(tx, workspace, caller).await?;
    let own = own.ok_or(RemoveMemberError::NotAMember)?.role;
    let needed = theirs.unwrap_or(Role::Admin).max(Role::Admin);
    if caller == user || own >= needed {
        Ok(())
    } else {
        Err(RemoveMemberError::RoleTooLow { own, needed })
    }
}
