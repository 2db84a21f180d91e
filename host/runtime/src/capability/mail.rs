//! Interface `mail`: mail to people, in jobs only, because sent mail cannot be
//! undone.

use std::sync::Arc;

use super::super::bindings::assurance::area::mail::{Error, Host, Message};
use super::super::convert::same;
use super::super::instance::CallState;
use super::{CapabilityError, convert_error};
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

    convert_error!();
}

same!(MailError => Error { Refused(why), Rejected(why), Unavailable(why) });
