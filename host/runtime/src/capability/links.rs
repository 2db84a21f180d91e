//! Interface `links`: signing links.

use super::super::bindings::assurance::area::links::{Error, Host};
use super::super::instance::CallState;
use super::CapabilityError;
use assurance_core::domain::manifest::Capability;
use assurance_core::domain::time::Timestamp;
use assurance_work::SignedLinkError;

impl Host for CallState {
    fn sign(
        &mut self,
        operation: String,
        claims: String,
        expires_at: i64,
    ) -> Result<String, CapabilityError<Error>> {
        let unit = self.enter(Capability::Links)?;
        let token = unit.sign_link(&operation, claims, Timestamp(expires_at));
        token.map_err(|error| {
            CapabilityError::Answer(match error {
                SignedLinkError::Misuse(what) => Error::Misuse(what),
                SignedLinkError::NoSession => Error::NoSession,
            })
        })
    }

    fn convert_error(&mut self, refusal: CapabilityError<Error>) -> wasmtime::Result<Error> {
        refusal.split()
    }
}
