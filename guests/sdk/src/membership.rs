//! Who belongs to the workspace, changed; for areas whose work that is.

use uuid::Uuid;

use crate::context::Scope;
use crate::time::Timestamp;
pub use crate::wit::assurance::area::membership::Account;
use crate::wit::assurance::area::membership::Error;
use crate::wit::assurance::area::types::Role;

/// There is no such user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoSuchUser;

impl Scope {
    /// Whoever signs in with this address, in any letter case, in any
    /// workspace or none.
    #[must_use]
    pub fn account(&self, email: &str) -> Option<Account> {
        self.host.membership_find_account(email)
    }

    /// Makes a person a member with the commit; a member keeps a higher role.
    ///
    /// # Errors
    /// Where nobody has this id.
    #[track_caller]
    pub fn add_member(&self, user: Uuid, role: Role) -> Result<(), NoSuchUser> {
        match self.host.membership_add(&user.to_string(), role) {
            Ok(()) => Ok(()),
            Err(Error::NoSuchUser) => Err(NoSuchUser),
            Err(Error::Misuse(what)) => panic!("membership misused: {what}"),
        }
    }

    /// A token with which whoever reads the mail of this address can make an
    /// account of it until a moment. To be sent there and nowhere else.
    #[must_use]
    #[track_caller]
    pub fn vouch(&self, email: &str, expires_at: Timestamp) -> String {
        match self.host.membership_vouch(email, expires_at.0) {
            Ok(voucher) => voucher,
            Err(error) => panic!("membership misused: {error:?}"),
        }
    }
}
