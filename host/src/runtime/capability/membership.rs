//! Who belongs to the workspace, changed.

use super::super::bindings::assurance::area::membership::{Account, Error, Host};
use super::super::bindings::assurance::area::types::Role;
use super::super::convert::call::named_role;
use super::super::instance::CallState;
use super::{MembershipRefusal, Refusal, stop};
use crate::domain::id::UserId;
use crate::domain::manifest::Capability;
use crate::domain::people::User;
use crate::domain::time::Timestamp;
use crate::work::{MembershipError, UnitOfWork};

impl CallState {
    fn membership(&mut self) -> wasmtime::Result<&mut UnitOfWork> {
        self.enter(Capability::Membership)
    }
}

impl Host for CallState {
    async fn find_account(&mut self, email: String) -> wasmtime::Result<Option<Account>> {
        let found = self.membership()?.account(&email).await.map_err(stop)?;
        Ok(found.map(account))
    }

    async fn add(&mut self, user: String, role: Role) -> Result<(), MembershipRefusal> {
        let unit = self.membership()?;
        let Ok(user) = user.parse::<UserId>() else {
            return Err(Refusal::Answer(Error::NoSuchUser));
        };
        Ok(unit.add_member(user, named_role(role)).await?)
    }

    fn vouch(&mut self, email: String, expires_at: i64) -> Result<String, MembershipRefusal> {
        Ok(self.membership()?.vouch(&email, Timestamp(expires_at))?)
    }

    fn convert_error(&mut self, refusal: MembershipRefusal) -> wasmtime::Result<Error> {
        refusal.split()
    }
}

fn account(user: User) -> Account {
    Account { user: user.id.to_string(), email: user.email, display_name: user.display_name }
}

impl From<MembershipError> for Error {
    fn from(error: MembershipError) -> Self {
        match error {
            MembershipError::NoSuchUser => Self::NoSuchUser,
            MembershipError::Misuse(what) => Self::Misuse(what),
        }
    }
}
