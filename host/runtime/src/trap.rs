//! Classifies failed calls by their cause and logs them for operators. Clients
//! never see these details.

use std::fmt;
use std::time::Duration;

use anyhow::anyhow;
use metrics::{counter, describe_counter};
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use super::backtrace;
use super::instance::{AreaLogContext, CallState};
use super::limits::ExceededMemoryLimit;
use super::settings::WriteLockLimit;
use super::time_slice::{CallMeter, ForcedEndReason};
use assurance_core::domain::area::CallOrigin;
use assurance_core::domain::manifest::Capability;
use assurance_core::recordings::{RecordedFault, ReplayStopReason, frames};
use assurance_store as store;
use assurance_work::{CallError, TimeLimit};

/// Metric: faults of areas' calls, by kind.
const FAULTS: &str = "assurance_area_faults_total";

/// Describes the metric of faults.
pub(super) fn describe_metrics() {
    describe_counter!(FAULTS, "Calls of an area that ended in a fault, by area and kind");
}

/// Reason why a host function ends the call.
#[derive(Debug, thiserror::Error)]
pub(super) enum FatalHostCallError {
    /// The guest made more host calls than this limit.
    #[error(
        "more than {0} host calls (runtime.max_host_calls; for one area \
         areas.limits.AREA.max_host_calls)"
    )]
    HostCalls(u32),
    /// A host function was called in `describe`, which has no capabilities.
    #[error("`describe` used the capability {0:?}")]
    InDescribe(Capability),
    /// A host function was called in a way that the contract forbids.
    #[error("{0}")]
    Misuse(String),
    /// An error of the store ends the call.
    #[error(transparent)]
    Store(store::Error),
    /// In a replay: the recorded call ended here with this fault.
    #[error("{}", .0.message.as_deref().unwrap_or_default())]
    Recorded(RecordedFault),
    /// In a replay: the recording has no result for the host call.
    #[error("the recording has no result: {0:?}")]
    NotInRecording(ReplayStopReason),
}

/// Error of a failed call, with the stack of the guest.
#[derive(Debug)]
pub(super) struct TrapReport {
    pub(super) error: CallError,
    /// Stack of the guest; empty if there is none, or if the call failed with
    /// an error of the store.
    backtrace: String,
}

impl From<CallError> for TrapReport {
    fn from(error: CallError) -> Self {
        Self { error, backtrace: String::new() }
    }
}

impl TrapReport {
    /// Classifies the error of a failed call by its cause, and formats the
    /// guest's stack.
    pub(super) fn new(error: wasmtime::Error, state: &CallState, meter: &CallMeter) -> Self {
        // A store error says nothing about the guest and can be frequent, so no
        // stack is formatted.
        let is_of_store = matches!(
            error.downcast_ref::<FatalHostCallError>(),
            Some(FatalHostCallError::Store(_))
        );
        let backtrace = error.downcast_ref::<WasmBacktrace>().filter(|_| !is_of_store);
        let backtrace = backtrace.map(backtrace::text).unwrap_or_default();
        Self { error: blame(error, state, meter), backtrace }
    }

    /// Returns the guest's stack as text; empty if there is none.
    pub(super) fn backtrace(&self) -> &str {
        &self.backtrace
    }

    /// Logs the failed call and counts the fault, unless the cause is an error
    /// of the store, overload, or a replaced version.
    pub(super) fn report(
        &self,
        area: &AreaLogContext,
        origin: Option<&CallOrigin>,
        last_lines: &[String],
    ) {
        if matches!(self.error, CallError::Store(_) | CallError::Overloaded | CallError::Replaced) {
            return;
        }
        tracing::error!(
            area.name = %area.name(),
            area.digest = %area.short_digest(),
            error = %self.error,
            backtrace = %self.backtrace,
            last_lines = %last_lines.join("\n"),
            "an area's call failed"
        );
        let Some(fault) = self.error.to_fault() else { return };
        counter!(FAULTS, "area" => area.name().to_owned(), "kind" => fault.kind.clone())
            .increment(1);
        if let Some(area_log) = area.area_log() {
            let fault = RecordedFault { frames: frames(&self.backtrace), ..fault };
            area_log.failed(area.digest(), origin, fault, last_lines);
        }
    }
}

impl ForcedEndReason {
    pub(super) fn into_error(self, deadline: TimeLimit) -> CallError {
        match self {
            Self::Overloaded => CallError::Overloaded,
            Self::Deadline => CallError::Deadline(deadline),
            Self::Panicked(what) => {
                CallError::Host(anyhow!("the host panicked in a guest's call: {what}"))
            }
        }
    }
}

fn blame(error: wasmtime::Error, state: &CallState, meter: &CallMeter) -> CallError {
    let error = match error.downcast::<FatalHostCallError>() {
        Ok(stop) => return stop.into(),
        Err(error) => error,
    };
    if error.is::<PoolConcurrencyLimitError>() {
        return CallError::Overloaded;
    }
    let trap = error.downcast_ref::<Trap>().copied();
    if trap == Some(Trap::Interrupt) {
        if meter.exceeds_write_lock_limit() {
            let limit = meter.write_lock_limit();
            return turn_exceeded(limit, limit.cpu);
        }
        let cpu = meter.exceeded().map(CallError::CpuTime);
        return cpu.unwrap_or(CallError::Deadline(meter.deadline()));
    }
    match (state.memory().denied(), trap) {
        (Some(ExceededMemoryLimit::Shared), _) => CallError::Overloaded,
        (Some(ExceededMemoryLimit::Own), _) => CallError::OutOfMemory(state.memory().max()),
        (None, Some(Trap::UnreachableCodeReached)) => aborted(state, &Trap::UnreachableCodeReached),
        (None, Some(trap)) => CallError::Trap(format!("{trap}{}", explanation(trap))),
        (None, None) if error.is::<I32Exit>() => aborted(state, &"it called `exit`"),
        (None, None) => CallError::Contract(error.root_cause().to_string()),
    }
}

/// Returns the error of a guest that ended its call itself, as it does after a
/// panic or an exception.
fn aborted(state: &CallState, how: &dyn fmt::Display) -> CallError {
    state.log().cause().map_or_else(|| CallError::Trap(how.to_string()), CallError::Panic)
}

/// Returns an explanation of the limit that may have caused the trap; empty for
/// most traps.
fn explanation(trap: Trap) -> &'static str {
    match trap {
        Trap::StackOverflow => " (more than 512 KiB of stack, a fixed limit)",
        Trap::MemoryOutOfBounds => " (an overflow of the stack in memory ends like this, too)",
        _ => "",
    }
}

/// Returns the error of a call that blocked other writers for too long: for the
/// time `held`.
pub(super) fn turn_exceeded(limit: WriteLockLimit, held: Duration) -> CallError {
    CallError::Turn { cpu: limit.cpu, wall: limit.wall, held }
}

/// Converts an error that ended a host call into a recorded fault; `None` if
/// the guest did not cause the error.
pub(super) fn to_fault(error: &wasmtime::Error) -> Option<RecordedFault> {
    let stop = error.downcast_ref::<FatalHostCallError>()?;
    let kind = match stop {
        FatalHostCallError::HostCalls(_) => "limit",
        FatalHostCallError::InDescribe(_) | FatalHostCallError::Misuse(_) => "contract",
        FatalHostCallError::Store(_)
        | FatalHostCallError::Recorded(_)
        | FatalHostCallError::NotInRecording(_) => return None,
    };
    Some(RecordedFault {
        kind: kind.to_owned(),
        message: Some(stop.to_string()),
        frames: Vec::new(),
    })
}

impl From<FatalHostCallError> for CallError {
    fn from(stop: FatalHostCallError) -> Self {
        match stop {
            FatalHostCallError::HostCalls(_) => Self::Limit(stop.to_string()),
            FatalHostCallError::InDescribe(_) | FatalHostCallError::Misuse(_) => {
                Self::Contract(stop.to_string())
            }
            FatalHostCallError::Store(error) => Self::Store(error),
            FatalHostCallError::Recorded(ref fault) if fault.kind == "limit" => {
                Self::Limit(stop.to_string())
            }
            FatalHostCallError::Recorded(_) => Self::Contract(stop.to_string()),
            FatalHostCallError::NotInRecording(_) => Self::Host(anyhow!("{stop}")),
        }
    }
}
