//! Interface `directory`: members of the workspace.

use super::super::bindings::assurance::area::directory::{Host, Person};
use super::super::instance::CallState;
use super::stop;
use assurance_core::domain::id::UserId;
use assurance_core::domain::manifest::Capability;
use assurance_work::Member;

impl Host for CallState {
    async fn member(&mut self, user: String) -> wasmtime::Result<Option<Person>> {
        let unit = self.enter(Capability::Directory)?;
        let Ok(user) = user.parse::<UserId>() else { return Ok(None) };
        Ok(unit.member(user).await.map_err(stop)?.map(person))
    }

    async fn members(&mut self) -> wasmtime::Result<Vec<Person>> {
        let members = self.enter(Capability::Directory)?.members().await.map_err(stop)?;
        Ok(members.into_iter().map(person).collect())
    }

    async fn workspace(&mut self) -> wasmtime::Result<(String, String)> {
        self.enter(Capability::Directory)?.workspace().await.map_err(stop)
    }
}

fn person(member: Member) -> Person {
    Person {
        user: member.user.to_string(),
        email: member.email,
        display_name: member.display_name,
        role: member.role.into(),
    }
}
