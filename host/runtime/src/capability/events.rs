//! Interface `events`: publishing events with the commit.

use super::super::bindings::assurance::area::events::{Error, Host};
use super::super::instance::CallState;
use super::CapabilityError;
use assurance_core::domain::manifest::Capability;
use assurance_work::EventOrJobError;

impl Host for CallState {
    fn publish(&mut self, name: String, data: String) -> Result<String, CapabilityError<Error>> {
        let published = self.enter(Capability::Events)?.publish(&name, data);
        published.map(|id| id.to_string()).map_err(|error| CapabilityError::Answer(error.into()))
    }

    fn convert_error(&mut self, refusal: CapabilityError<Error>) -> wasmtime::Result<Error> {
        refusal.split()
    }
}

impl From<EventOrJobError> for Error {
    fn from(error: EventOrJobError) -> Self {
        match error {
            EventOrJobError::Misuse(what) => Self::Misuse(what),
            EventOrJobError::LimitExceeded => Self::LimitExceeded,
        }
    }
}
