//! Interface `membership`: looking up accounts and adding members.

use super::super::bindings::assurance::area::membership::{Account, Error, Host};
use super::super::bindings::assurance::area::types::Role;
use super::super::convert::same;
use super::super::instance::CallState;
use super::{CapabilityError, convert_error, stop};
use assurance_core::domain::id::UserId;
use assurance_core::domain::manifest::Capability;
use assurance_core::domain::people::User;
use assurance_core::domain::time::Timestamp;
use assurance_work::MembershipError;

impl Host for CallState {
    async fn find_account(&mut self, email: String) -> wasmtime::Result<Option<Account>> {
        let found = self.enter(Capability::Membership)?.account(&email).await.map_err(stop)?;
        Ok(found.map(account))
    }

    async fn add(&mut self, user: String, role: Role) -> Result<(), CapabilityError<Error>> {
        let unit = self.enter(Capability::Membership)?;
        let Ok(user) = user.parse::<UserId>() else {
            return Err(CapabilityError::Answer(Error::NoSuchUser));
        };
        Ok(unit.add_member(user, role.into()).await?)
    }

    fn vouch(&mut self, email: String, expires_at: i64) -> Result<String, CapabilityError<Error>> {
        Ok(self.enter(Capability::Membership)?.vouch(&email, Timestamp(expires_at))?)
    }

    convert_error!();
}

fn account(user: User) -> Account {
    Account { user: user.id.to_string(), email: user.email, display_name: user.display_name }
}

same!(MembershipError => Error { NoSuchUser, Misuse(what) });
