//! Changes the members of the workspace; for areas that manage members.

use uuid::Uuid;

use crate::context::Scope;
use crate::time::Timestamp;
pub use crate::wit::assurance::area::membership::Account;
use crate::wit::assurance::area::membership::Error;
use crate::wit::assurance::area::types::Role;

/// Error of adding a member: no user has this id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoSuchUser;

impl Scope {
    /// Returns the account with this e-mail address, in any letter case, even if it belongs to no
    /// workspace.
    #[must_use]
    pub fn account(&self, email: &str) -> Option<Account> {
        self.host.membership_find_account(email)
    }

    /// Makes a user a member when the call commits. A member with a higher role keeps that role.
    ///
    /// # Errors
    /// If no user has this id.
    #[track_caller]
    pub fn add_member(&self, user: Uuid, role: Role) -> Result<(), NoSuchUser> {
        match self.host.membership_add(&user.to_string(), role) {
            Ok(()) => Ok(()),
            Err(Error::NoSuchUser) => Err(NoSuchUser),
            Err(Error::Misuse(what)) => panic!("membership misused: {what}"),
        }
    }

    /// Returns a token that allows its holder to register an account with this address until
    /// `expires_at`. Send it to this address and nowhere else.
    #[must_use]
    #[track_caller]
    pub fn vouch(&self, email: &str, expires_at: Timestamp) -> String {
        match self.host.membership_vouch(email, expires_at.0) {
            Ok(voucher) => voucher,
            Err(error) => panic!("membership misused: {error:?}"),
        }
    }
}
