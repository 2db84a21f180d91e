//! Interface `links`: signing links.

use super::super::bindings::assurance::area::links::{Error, Host};
use super::super::convert::same;
use super::super::instance::CallState;
use super::{CapabilityError, convert_error};
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
        token.map_err(|error| CapabilityError::Answer(error.into()))
    }

    convert_error!();
}

same!(SignedLinkError => Error { Misuse(what), NoSession });
