//! What areas can do, one file per import: thin over the unit of work.
//!
//! A wish that fails is either told to the guest, as its interface's typed
//! error, or ends the call.

mod blobs;
mod calendar;
mod crypto;
mod directory;
mod documents;
mod egress;
mod events;
mod jobs;
mod links;
mod log;
mod mail;
mod malware;
mod membership;
mod queue;
mod secrets;
mod settings;

use super::bindings::assurance::area;
use super::trap::Stop;
use crate::store;
use crate::work::Fault;

/// Why a host function has no result.
#[derive(Debug)]
pub(super) enum Refusal<E> {
    /// The guest is told.
    Answer(E),
    /// The call ends.
    Stop(wasmtime::Error),
}

pub(super) type BlobsRefusal = Refusal<area::blobs::Error>;
pub(super) type CalendarRefusal = Refusal<area::calendar::Error>;
pub(super) type DocumentsRefusal = Refusal<area::documents::Error>;
pub(super) type EgressRefusal = Refusal<area::egress::Error>;
pub(super) type EventsRefusal = Refusal<area::events::Error>;
pub(super) type JobsRefusal = Refusal<area::jobs::Error>;
pub(super) type LinksRefusal = Refusal<area::links::Error>;
pub(super) type MalwareRefusal = Refusal<area::malware::Error>;
pub(super) type MailRefusal = Refusal<area::mail::Error>;
pub(super) type MembershipRefusal = Refusal<area::membership::Error>;
pub(super) type QueueRefusal = Refusal<area::queue::Error>;
pub(super) type SecretsRefusal = Refusal<area::secrets::Error>;

impl<E> Refusal<E> {
    /// As the generated glue wants it: the guest's error, or a trap.
    fn split(self) -> wasmtime::Result<E> {
        match self {
            Self::Answer(error) => Ok(error),
            Self::Stop(error) => Err(error),
        }
    }
}

impl<E> From<wasmtime::Error> for Refusal<E> {
    fn from(error: wasmtime::Error) -> Self {
        Self::Stop(error)
    }
}

impl<D: std::error::Error, E: From<D>> From<Fault<D>> for Refusal<E> {
    fn from(fault: Fault<D>) -> Self {
        match fault {
            Fault::Refused(error) => Self::Answer(error.into()),
            Fault::Abort(error) => Self::Stop(stop(error)),
        }
    }
}

/// The store ends the call.
fn stop(error: store::Error) -> wasmtime::Error {
    Stop::Store(error).into()
}
