//! Layer between a guest and the host's functions: records calls with their
//! results, or returns results from a recording. Most calls are neither
//! recorded nor replayed and are only forwarded.
//!
//! The functions are generated from `wit/` by `build.rs`, which also lists
//! those that are not recorded.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use wasmtime::component::HasData;

use super::bindings::assurance::area;
use super::capability::CapabilityError;
use super::instance::CallState;
use super::trap::{self, FatalHostCallError};
use assurance_core::recordings::{HostCallResult, Recorder};

/// Makes the linker call host functions of [`HostCallRecorder`].
pub(super) struct HasHostCallRecorder;

impl HasData for HasHostCallRecorder {
    type Data<'a> = HostCallRecorder<'a>;
}

/// Host functions that the guest of one call can call. Forwards them to the
/// call's state, and records or replays their results.
pub(super) struct HostCallRecorder<'a>(pub(super) &'a mut CallState);

/// How a host call gets its result.
enum HostCallMode {
    /// The host function runs; nothing is recorded.
    Live,
    /// The host function runs; the call and its result are recorded.
    Written(Arc<Recorder>),
    /// The result comes from a recording; the host function does not run.
    Played(wasmtime::Result<HostCallResult>),
}

impl area::types::Host for HostCallRecorder<'_> {}

impl area::manifest::Host for HostCallRecorder<'_> {}

impl HostCallRecorder<'_> {
    fn turn(&mut self, call: &'static str, arguments: &impl Serialize) -> HostCallMode {
        if let Some(recorder) = self.0.recorder() {
            recorder.record_call(call, arguments);
            return HostCallMode::Written(Arc::clone(recorder));
        }
        let Some(player) = self.0.player() else { return HostCallMode::Live };
        let answer = player
            .answer(call, arguments)
            .map_err(|silence| FatalHostCallError::NotInRecording(silence).into());
        HostCallMode::Played(answer)
    }
}

/// Result type of a host function that can be written to a recording and read
/// from it.
trait RecordableResult: Sized {
    fn write(&self, recorder: &Recorder);

    /// Converts the recorded result of a host function.
    fn read(played: wasmtime::Result<HostCallResult>) -> Self;
}

impl<T: Serialize + DeserializeOwned> RecordableResult for wasmtime::Result<T> {
    fn write(&self, recorder: &Recorder) {
        match self {
            Ok(result) => recorder.record_result(result),
            Err(error) => stopped(recorder, error),
        }
    }

    fn read(played: wasmtime::Result<HostCallResult>) -> Self {
        match played? {
            HostCallResult::Ok(result) => parse(&result),
            HostCallResult::Error(_) => {
                Err(FatalHostCallError::Misuse("an error where there is none".into()).into())
            }
            HostCallResult::Ended(fault) => Err(FatalHostCallError::Recorded(fault).into()),
        }
    }
}

impl<T, E> RecordableResult for Result<T, CapabilityError<E>>
where
    T: Serialize + DeserializeOwned,
    E: Serialize + DeserializeOwned,
{
    fn write(&self, recorder: &Recorder) {
        match self {
            Ok(result) => recorder.record_result(result),
            Err(CapabilityError::Answer(error)) => recorder.record_error(error),
            Err(CapabilityError::Stop(error)) => stopped(recorder, error),
        }
    }

    fn read(played: wasmtime::Result<HostCallResult>) -> Self {
        match played? {
            HostCallResult::Ok(result) => Ok(parse(&result)?),
            HostCallResult::Error(error) => Err(CapabilityError::Answer(parse(&error)?)),
            HostCallResult::Ended(fault) => {
                Err(CapabilityError::Stop(FatalHostCallError::Recorded(fault).into()))
            }
        }
    }
}

fn stopped(recorder: &Recorder, error: &wasmtime::Error) {
    if let Some(fault) = trap::to_fault(error) {
        recorder.record_fault(fault);
    }
}

/// Parses a recorded value. Fails if an edited recording contains a value of
/// another type.
fn parse<T: DeserializeOwned>(raw: &RawValue) -> wasmtime::Result<T> {
    let parsed = serde_json::from_str(raw.get());
    parsed.map_err(|error| FatalHostCallError::Misuse(format!("a recorded answer: {error}")).into())
}

/// Implements one host function by forwarding it through the recorder.
macro_rules! pass_on {
    ($this:ident, $host:path, $call:expr, $function:ident($($argument:ident),*) $($wait:tt)*) => {{
        let recorder = match $this.turn($call, &($(&$argument,)*)) {
            HostCallMode::Played(answer) => return RecordableResult::read(answer),
            HostCallMode::Written(recorder) => Some(recorder),
            HostCallMode::Live => None,
        };
        let answer = <CallState as $host>::$function($this.0, $($argument),*)$($wait)*;
        if let Some(recorder) = recorder {
            RecordableResult::write(&answer, &recorder);
        }
        answer
    }};
}

/// Forwarding implementations of all functions in the contract, generated by
/// `build.rs`.
mod interfaces {
    use super::area::*;
    use super::{CallState, CapabilityError, HostCallMode, HostCallRecorder, RecordableResult};

    include!(concat!(env!("OUT_DIR"), "/host_call_recorder.rs"));
}
