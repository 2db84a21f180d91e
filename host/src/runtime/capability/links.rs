//! Links that are their own authority.

use super::super::bindings::assurance::area::links::{Error, Host};
use super::super::instance::CallState;
use super::{LinksRefusal, Refusal};
use crate::domain::manifest::Capability;
use crate::domain::time::Timestamp;
use crate::work::LinkError;

impl Host for CallState {
    fn sign(
        &mut self,
        operation: String,
        claims: String,
        expires_at: i64,
    ) -> Result<String, LinksRefusal> {
        let unit = self.enter(Capability::Links)?;
        let token = unit.sign_link(&operation, claims, Timestamp(expires_at));
        token.map_err(|error| {
            Refusal::Answer(match error {
                LinkError::Misuse(what) => Error::Misuse(what),
                LinkError::NoSession => Error::NoSession,
            })
        })
    }

    fn convert_error(&mut self, refusal: LinksRefusal) -> wasmtime::Result<Error> {
        refusal.split()
    }
}
