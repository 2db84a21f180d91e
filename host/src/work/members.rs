//! The people of the workspace.

use super::UnitOfWork;
use crate::domain::id::UserId;
use crate::domain::role::Role;
use crate::store::Error;

/// A member of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub user: UserId,
    /// The address the user signs in with.
    pub email: String,
    /// What the user is called.
    pub display_name: String,
    /// What the user may do.
    pub role: Role,
}

impl UnitOfWork {
    /// The member, where the user is one.
    pub async fn member(&mut self, _user: UserId) -> Result<Option<Member>, Error> {
        Err(Error::NotFound)
    }

    /// All members, by e-mail.
    pub async fn members(&mut self) -> Result<Vec<Member>, Error> {
        Err(Error::NotFound)
    }

    /// The workspace's name and slug.
    pub async fn workspace(&mut self) -> Result<(String, String), Error> {
        Err(Error::NotFound)
    }
}
