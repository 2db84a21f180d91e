//! Interface `mail`: mail to people, in jobs only, because sent mail cannot be
//! undone.

use std::sync::Arc;

use super::super::bindings::assurance::area::mail::{Error, Host, Message};
use super::super::instance::CallState;
use super::CapabilityError;
use assurance_core::domain::manifest::Capability;
use assurance_outside::mail::{self, MailError};

impl Host for CallState {
    async fn send(&mut self, message: Message) -> Result<(), CapabilityError<Error>> {
        let shared = Arc::clone(&self.shared);
        let unit = self.enter(Capability::Mail)?;
        if !unit.spec().in_job {
            return Err(CapabilityError::Answer(Error::NotInAJob));
        }
        let Message { to, subject, text } = message;
        Ok(unit.send_mail(&shared.mail, mail::Message { to, subject, text }).await?)
    }

    fn convert_error(&mut self, refusal: CapabilityError<Error>) -> wasmtime::Result<Error> {
        refusal.split()
    }
}

impl From<MailError> for Error {
    fn from(error: MailError) -> Self {
        match error {
            MailError::Refused(why) => Self::Refused(why),
            MailError::Rejected(why) => Self::Rejected(why),
            MailError::Unavailable(why) => Self::Unavailable(why),
        }
    }
}
