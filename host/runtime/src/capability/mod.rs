//! Host functions of areas, one file for each WIT interface. They are thin
//! wrappers of the unit of work.
//!
//! A host function that fails either returns its interface's typed error to the
//! guest, or ends the call.

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

use super::trap::FatalHostCallError;
use assurance_store as store;
use assurance_work::HostCallError;

/// Reason why a host function has no result.
#[derive(Debug)]
pub(super) enum CapabilityError<E> {
    /// The guest receives this error.
    Answer(E),
    /// The guest's call ends with this error.
    Stop(wasmtime::Error),
}

impl<E> CapabilityError<E> {
    /// Returns the guest's error as a value and the end of the call as a trap,
    /// as the generated bindings require.
    pub(super) fn split(self) -> wasmtime::Result<E> {
        match self {
            Self::Answer(error) => Ok(error),
            Self::Stop(error) => Err(error),
        }
    }
}

impl<E> From<wasmtime::Error> for CapabilityError<E> {
    fn from(error: wasmtime::Error) -> Self {
        Self::Stop(error)
    }
}

impl<D: std::error::Error, E: From<D>> From<HostCallError<D>> for CapabilityError<E> {
    fn from(fault: HostCallError<D>) -> Self {
        match fault {
            HostCallError::Refused(error) => Self::Answer(error.into()),
            HostCallError::Abort(error) => Self::Stop(stop(error)),
        }
    }
}

/// Returns the error with which an error of the store ends the guest's call.
fn stop(error: store::Error) -> wasmtime::Error {
    FatalHostCallError::Store(error).into()
}

/// Implements `convert_error` of an interface's trait `Host`.
macro_rules! convert_error {
    () => {
        fn convert_error(&mut self, refusal: CapabilityError<Error>) -> wasmtime::Result<Error> {
            refusal.split()
        }
    };
}
use convert_error;
