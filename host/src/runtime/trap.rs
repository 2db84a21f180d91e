//! How a call ended that did not end well: whose fault it was, and what the
//! operator is told. Clients never see any of it.

use std::time::Duration;

use anyhow::anyhow;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};

use super::instance::{AreaName, CallState};
use super::limits::Denied;
use super::overstay::{Lost, Meter};
use super::settings::MaxTurn;
use crate::domain::area::Origin;
use crate::domain::manifest::Capability;
use crate::recordings::{Fault, Silence, frames};
use crate::store;
use crate::work::CallError;

/// Why a host function ends the call it was made in.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop {
    /// Too many host calls.
    #[error("more than {0} host calls")]
    HostCalls(u32),
    /// `describe` has no capabilities.
    #[error("`describe` used the capability {0:?}")]
    InDescribe(Capability),
    /// A host function called as the contract forbids.
    #[error("{0}")]
    Misuse(String),
    /// The store ends the call.
    #[error(transparent)]
    Store(store::Error),
    /// The recorded call ended here, so.
    #[error("{}", .0.message.as_deref().unwrap_or_default())]
    Recorded(Fault),
    /// The recording that is played has no answer.
    #[error("the recording has no answer: {0:?}")]
    Silent(Silence),
}

/// A failure, and what is known of the guest at that moment.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: CallError,
    /// The guest's stack, symbolised and demangled; empty where there is none.
    backtrace: String,
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self { error, backtrace: String::new() }
    }
}

impl Failure {
    /// Finds the one to blame.
    pub(super) fn new(error: wasmtime::Error, state: &CallState, meter: &Meter) -> Self {
        let backtrace =
            error.downcast_ref::<WasmBacktrace>().map(ToString::to_string).unwrap_or_default();
        Self { error: blame(error, state, meter), backtrace }
    }

    /// The guest's stack.
    pub(super) fn backtrace(&self) -> &str {
        &self.backtrace
    }

    /// Tells the operator, unless it is nobody's fault.
    pub(super) fn report(&self, area: &AreaName, origin: Option<&Origin>, last_lines: &[String]) {
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
        if let (Some(fault), Some(journal)) = (self.error.to_fault(), area.journal()) {
            let fault = Fault { frames: frames(&self.backtrace), ..fault };
            journal.failed(area.digest(), origin, fault, last_lines);
        }
    }
}

impl Lost {
    pub(super) fn into_error(self, deadline: Duration) -> CallError {
        match self {
            Self::Overloaded => CallError::Overloaded,
            Self::Deadline => CallError::Deadline(deadline),
            Self::Panicked(what) => CallError::Host(anyhow!("a guest's call panicked: {what}")),
        }
    }
}

fn blame(error: wasmtime::Error, state: &CallState, meter: &Meter) -> CallError {
    let error = match error.downcast::<Stop>() {
        Ok(stop) => return stop.into(),
        Err(error) => error,
    };
    if error.is::<PoolConcurrencyLimitError>() {
        return CallError::Overloaded;
    }
    let trap = error.downcast_ref::<Trap>().copied();
    if trap == Some(Trap::Interrupt) {
        if meter.exceeded_turn() {
            return turn_exceeded(meter.max_turn());
        }
        let cpu = meter.exceeded().map(CallError::CpuTime);
        return cpu.unwrap_or(CallError::Deadline(meter.deadline()));
    }
    match (state.memory().denied(), trap) {
        (Some(Denied::Shared), _) => CallError::Overloaded,
        (Some(Denied::Own), _) => CallError::OutOfMemory(error.root_cause().to_string()),
        (None, Some(trap)) => CallError::Trap(trap.to_string()),
        (None, None) => CallError::Contract(error.root_cause().to_string()),
    }
}

/// Why a call was ended that kept others from writing for too long.
pub(super) fn turn_exceeded(turn: MaxTurn) -> CallError {
    CallError::Turn { cpu: turn.cpu, wall: turn.wall }
}

/// As a recording tells why a host function ended the call; nothing where that
/// is not the guest's fault.
pub(super) fn to_fault(error: &wasmtime::Error) -> Option<Fault> {
    let stop = error.downcast_ref::<Stop>()?;
    let kind = match stop {
        Stop::HostCalls(_) => "limit",
        Stop::InDescribe(_) | Stop::Misuse(_) => "contract",
        Stop::Store(_) | Stop::Recorded(_) | Stop::Silent(_) => return None,
    };
    Some(Fault { kind: kind.to_owned(), message: Some(stop.to_string()), frames: Vec::new() })
}

impl From<Stop> for CallError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::HostCalls(_) => Self::Limit(stop.to_string()),
            Stop::InDescribe(_) | Stop::Misuse(_) => Self::Contract(stop.to_string()),
            Stop::Store(error) => Self::Store(error),
            Stop::Recorded(ref fault) if fault.kind == "limit" => Self::Limit(stop.to_string()),
            Stop::Recorded(_) => Self::Contract(stop.to_string()),
            Stop::Silent(_) => Self::Host(anyhow!("{stop}")),
        }
    }
}
