//! Between a guest and the host's functions: writes down what crosses, or
//! answers from what was written down. Where neither is wanted, which is
//! nearly always, it only passes on.
//!
//! Not of the transcript are functions whose answer is the same anywhere
//! (`calendar`, `crypto.sha256`, `crypto.ed25519-verify`), and `log`, which has
//! none.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use wasmtime::component::HasData;

use super::bindings::assurance::area;
use super::capability::{self, Refusal};
use super::instance::CallState;
use super::trap::{self, Stop};
use crate::recordings::{Answer, Recorder};

/// Tells the linker that host functions are [`Transcriber`]'s.
pub(super) struct Transcribed;

impl HasData for Transcribed {
    type Data<'a> = Transcriber<'a>;
}

/// One host call on its way.
pub(super) struct Transcriber<'a>(pub(super) &'a mut CallState);

/// How a host call is answered.
enum Turn {
    /// By the host.
    Live,
    /// By the host, and it is written down.
    Written(Arc<Recorder>),
    /// As it was written down.
    Played(wasmtime::Result<Answer>),
}

impl Transcriber<'_> {
    fn turn(&mut self, call: &'static str, arguments: &impl Serialize) -> Turn {
        if let Some(recorder) = self.0.recorder() {
            recorder.ask(call, arguments);
            return Turn::Written(Arc::clone(recorder));
        }
        let Some(player) = self.0.player() else { return Turn::Live };
        let answer = player.answer(call, arguments).map_err(|silence| Stop::Silent(silence).into());
        Turn::Played(answer)
    }
}

/// What a host function gives back.
trait Answered: Sized {
    fn write(&self, recorder: &Recorder);

    /// Out of a recording.
    fn read(played: wasmtime::Result<Answer>) -> Self;
}

impl<T: Serialize + DeserializeOwned> Answered for wasmtime::Result<T> {
    fn write(&self, recorder: &Recorder) {
        match self {
            Ok(result) => recorder.answered(result),
            Err(error) => stopped(recorder, error),
        }
    }

    fn read(played: wasmtime::Result<Answer>) -> Self {
        match played? {
            Answer::Ok(result) => parse(&result),
            Answer::Error(_) => Err(Stop::Misuse("an error where there is none".into()).into()),
            Answer::Ended(fault) => Err(Stop::Recorded(fault).into()),
        }
    }
}

impl<T, E> Answered for Result<T, Refusal<E>>
where
    T: Serialize + DeserializeOwned,
    E: Serialize + DeserializeOwned,
{
    fn write(&self, recorder: &Recorder) {
        match self {
            Ok(result) => recorder.answered(result),
            Err(Refusal::Answer(error)) => recorder.refused(error),
            Err(Refusal::Stop(error)) => stopped(recorder, error),
        }
    }

    fn read(played: wasmtime::Result<Answer>) -> Self {
        match played? {
            Answer::Ok(result) => Ok(parse(&result)?),
            Answer::Error(error) => Err(Refusal::Answer(parse(&error)?)),
            Answer::Ended(fault) => Err(Refusal::Stop(Stop::Recorded(fault).into())),
        }
    }
}

fn stopped(recorder: &Recorder, error: &wasmtime::Error) {
    if let Some(fault) = trap::to_fault(error) {
        recorder.stopped(fault);
    }
}

/// A recording can be edited, and then be of another type.
fn parse<T: DeserializeOwned>(raw: &RawValue) -> wasmtime::Result<T> {
    let parsed = serde_json::from_str(raw.get());
    parsed.map_err(|error| Stop::Misuse(format!("a recorded answer: {error}")).into())
}

/// One host function that is passed on, `.await`ed where it waits.
macro_rules! pass_on {
    ($this:ident, $host:path, $call:expr, $function:ident($($argument:ident),*) $($wait:tt)*) => {{
        let recorder = match $this.turn($call, &($(&$argument,)*)) {
            Turn::Played(answer) => return Answered::read(answer),
            Turn::Written(recorder) => Some(recorder),
            Turn::Live => None,
        };
        let answer = <CallState as $host>::$function($this.0, $($argument),*)$($wait)*;
        if let Some(recorder) = recorder {
            Answered::write(&answer, &recorder);
        }
        answer
    }};
}

/// The functions of one interface: those that wait, then those that do not,
/// then the interface's error where it has one.
macro_rules! transcribe {
    (
        $interface:ident:
        $(async $function:ident($($argument:ident: $of:ty),*) -> $answer:ty;)*
        $(now $at_once:ident($($given:ident: $kind:ty),*) -> $result:ty;)*
        $(refuses $refusal:ty)?
    ) => {
        impl area::$interface::Host for Transcriber<'_> {
            $(async fn $function(&mut self, $($argument: $of),*) -> $answer {
                pass_on!(
                    self,
                    area::$interface::Host,
                    concat!(stringify!($interface), ".", stringify!($function)),
                    $function($($argument),*).await
                )
            })*

            $(fn $at_once(&mut self, $($given: $kind),*) -> $result {
                pass_on!(
                    self,
                    area::$interface::Host,
                    concat!(stringify!($interface), ".", stringify!($at_once)),
                    $at_once($($given),*)
                )
            })*

            $(fn convert_error(
                &mut self,
                refusal: $refusal,
            ) -> wasmtime::Result<area::$interface::Error> {
                <CallState as area::$interface::Host>::convert_error(self.0, refusal)
            })?
        }
    };
}

mod interfaces;
