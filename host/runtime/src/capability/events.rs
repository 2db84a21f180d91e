//! Interface `events`: publishing events with the commit.

use super::super::bindings::assurance::area::events::{Error, Host};
use super::super::convert::same;
use super::super::instance::CallState;
use super::{CapabilityError, convert_error};
use assurance_core::domain::manifest::Capability;
use assurance_work::PublishOrEnqueueError;

impl Host for CallState {
    fn publish(&mut self, name: String, data: String) -> Result<String, CapabilityError<Error>> {
        let published = self.enter(Capability::Events)?.publish(&name, data);
        published.map(|id| id.to_string()).map_err(|error| CapabilityError::Answer(error.into()))
    }

    convert_error!();
}

same!(PublishOrEnqueueError => Error { Misuse(what), LimitExceeded });
