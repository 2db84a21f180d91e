//! Between a guest and the host's functions: records calls with their results,
//! or answers from a recording. Most calls have neither and only pass through.
//!
//! The functions are generated from `wit/` by `build.rs`, which also says which
//! ones are not recorded.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use wasmtime::component::HasData;

use super::bindings::assurance::area;
use super::capability::CapabilityError;
use super::instance::CallState;
use super::trap::{self, CallStop};
use assurance_core::recordings::{HostCallResult, Recorder};

/// Makes the linker call host functions of [`HostCallRecorder`].
pub(super) struct RecordingLinker;

impl HasData for RecordingLinker {
    type Data<'a> = HostCallRecorder<'a>;
}

/// One host call in progress.
pub(super) struct HostCallRecorder<'a>(pub(super) &'a mut CallState);

/// Source of a host call's result.
enum HostCallMode {
    /// The host; nothing is recorded.
    Live,
    /// The host; call and result are recorded.
    Written(Arc<Recorder>),
    /// The recording.
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
            .map_err(|silence| CallStop::NotInRecording(silence).into());
        HostCallMode::Played(answer)
    }
}

/// A result type of a host function.
trait HostCallValue: Sized {
    fn write(&self, recorder: &Recorder);

    /// Reads the result from a recording.
    fn read(played: wasmtime::Result<HostCallResult>) -> Self;
}

impl<T: Serialize + DeserializeOwned> HostCallValue for wasmtime::Result<T> {
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
                Err(CallStop::Misuse("an error where there is none".into()).into())
            }
            HostCallResult::Ended(fault) => Err(CallStop::Recorded(fault).into()),
        }
    }
}

impl<T, E> HostCallValue for Result<T, CapabilityError<E>>
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
                Err(CapabilityError::Stop(CallStop::Recorded(fault).into()))
            }
        }
    }
}

fn stopped(recorder: &Recorder, error: &wasmtime::Error) {
    if let Some(fault) = trap::to_fault(error) {
        recorder.record_fault(fault);
    }
}

/// An edited recording can contain a value of another type.
fn parse<T: DeserializeOwned>(raw: &RawValue) -> wasmtime::Result<T> {
    let parsed = serde_json::from_str(raw.get());
    parsed.map_err(|error| CallStop::Misuse(format!("a recorded answer: {error}")).into())
}

/// Implements one host function by forwarding it through the recorder.
macro_rules! pass_on {
    ($this:ident, $host:path, $call:expr, $function:ident($($argument:ident),*) $($wait:tt)*) => {{
        let recorder = match $this.turn($call, &($(&$argument,)*)) {
            HostCallMode::Played(answer) => return HostCallValue::read(answer),
            HostCallMode::Written(recorder) => Some(recorder),
            HostCallMode::Live => None,
        };
        let answer = <CallState as $host>::$function($this.0, $($argument),*)$($wait)*;
        if let Some(recorder) = recorder {
            HostCallValue::write(&answer, &recorder);
        }
        answer
    }};
}

/// Every function that the contract lets a guest call (`build.rs`).
mod interfaces {
    use super::area::*;
    use super::{CallState, CapabilityError, HostCallMode, HostCallRecorder, HostCallValue};

    include!(concat!(env!("OUT_DIR"), "/host_call_recorder.rs"));
}
