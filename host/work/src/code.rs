//! The interface between the host and an area's code: a component in
//! production, the same code compiled natively in the benchmark.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;

use super::UnitOfWork;
use assurance_core::budgets;
use assurance_core::domain::area::{JobRun, Problem, Request, SuccessReply};
use assurance_core::domain::job::{JobFailure, JobOutcome};
use assurance_core::domain::manifest::Manifest;
use assurance_core::recordings::Player;

/// Code of one version of an area, which executes requests and jobs. Each call
/// is isolated from all others.
pub trait AreaCode: Send + Sync + 'static {
    /// Returns whether this process can run the code; false for a live version
    /// that it cannot load, so that only the manifest is available.
    fn is_loaded(&self) -> bool {
        true
    }

    /// Calls the component's `describe` again; `None` for code that is not a
    /// component.
    fn describe(&self) -> BoxFuture<'_, Result<Option<Manifest>, CallError>> {
        Box::pin(async { Ok(None) })
    }

    /// Executes one request within the deadline. The result has the unit of
    /// work, which is not committed.
    fn handle<'a>(
        &'a self,
        unit: UnitOfWork,
        _request: &'a Request,
        _deadline: Duration,
    ) -> BoxFuture<'a, CallOutcome<Result<SuccessReply, Problem>>> {
        unsupported(unit, "this code executes no requests")
    }

    /// Runs one job or event delivery within the timeout.
    fn run<'a>(
        &'a self,
        unit: UnitOfWork,
        _job: &'a JobRun,
        _timeout: Duration,
    ) -> BoxFuture<'a, CallOutcome<Result<JobOutcome, JobFailure>>> {
        unsupported(unit, "this code runs no jobs")
    }

    /// Returns the maximum number of jobs of this kind in one call of
    /// [`AreaCode::run_batch`]; 1 if they only run by themselves.
    fn max_batch(&self, _kind: &str) -> u32 {
        1
    }

    /// Runs several jobs of one kind and workspace in one call, within the
    /// timeout. Returns an outcome for each, in their order.
    fn run_batch<'a>(
        &'a self,
        unit: UnitOfWork,
        _jobs: &'a [JobRun],
        _timeout: Duration,
    ) -> BoxFuture<'a, CallOutcome<Result<Vec<JobOutcome>, JobFailure>>> {
        unsupported(unit, "this code runs jobs by themselves only")
    }

    /// Ends the selected running calls of this code and discards their
    /// uncommitted writes. Later calls are not affected.
    fn end_calls(&self, _which: RunningCallSelector) {}

    /// Replays a recorded request with the recorded results of its host calls;
    /// fails for code that is not a component.
    fn replay_request<'a>(
        &'a self,
        _player: &'a Arc<Player>,
    ) -> BoxFuture<'a, Result<Result<SuccessReply, Problem>, CallError>> {
        Box::pin(async { Err(no_component()) })
    }

    /// Replays a recorded job with the recorded results of its host calls;
    /// fails for code that is not a component.
    fn replay_run<'a>(
        &'a self,
        _player: &'a Arc<Player>,
    ) -> BoxFuture<'a, Result<Result<JobOutcome, JobFailure>, CallError>> {
        Box::pin(async { Err(no_component()) })
    }
}

/// Selects the calls of a version that an operator's action ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunningCallSelector {
    /// Calls that block other writers, and still do so after half a second.
    HoldingWriteLock,
    /// Calls that began before this time, at which the version was replaced or
    /// removed. Later calls belong to a version that was activated again.
    BegunBefore(Instant),
}

/// Returns the outcome of a call that the code does not support.
fn unsupported<T>(unit: UnitOfWork, what: &'static str) -> BoxFuture<'static, CallOutcome<T>>
where
    T: Send + 'static,
{
    let result = Err(CallError::Host(anyhow::anyhow!(what)));
    Box::pin(std::future::ready(CallOutcome { unit: Some(unit), result }))
}

fn no_component() -> CallError {
    CallError::Host(anyhow::anyhow!("only a component can replay a recording"))
}

/// Result of a call of an area's code, with its unit of work, which is neither
/// committed nor dropped.
#[derive(Debug)]
pub struct CallOutcome<T> {
    /// Reads and pending writes of the call; `None` if they were lost with the
    /// instance.
    pub unit: Option<UnitOfWork>,
    /// The area's result, or the reason why there is none.
    pub result: Result<T, CallError>,
}

/// A limit of the time that one call of an area's code may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeLimit {
    /// Maximum elapsed or processor time of the call.
    pub time: Duration,
    /// Setting that determines the limit, as text for an error message.
    pub setting: &'static str,
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({})", self.time, self.setting)
    }
}

/// Reason why a call of an area's code has no result, distinguished by cause.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The guest trapped; the report is for operators.
    #[error("the guest trapped: {0}")]
    Trap(String),
    /// The guest panicked or threw an exception. The text is the guest's own; it
    /// may quote its data.
    #[error("{0}")]
    Panic(String),
    /// The guest exceeded its deadline.
    #[error("the guest exceeded its deadline of {0}")]
    Deadline(TimeLimit),
    /// The guest exceeded its processor time.
    #[error("the guest used more than {0} of processor time")]
    CpuTime(TimeLimit),
    /// The guest exceeded its memory limit, in bytes.
    #[error(
        "the guest needed more than {0} bytes of memory (runtime.max_memory_bytes; for one area \
         areas.limits.AREA.max_memory_bytes)"
    )]
    OutOfMemory(usize),
    /// The guest blocked other writers of the database for too long.
    #[error(
        "the guest blocked other writers for more than {cpu:?} of processor time or {wall:?} \
         in all (runtime.max_turn_cpu_ms, runtime.max_turn_ms); compute before writing and \
         querying the written documents, or end the step with `continue`"
    )]
    Turn {
        /// Limit of the processor time for which a call may block other
        /// writers.
        cpu: Duration,
        /// Limit of the total time for which a call may block other writers.
        wall: Duration,
        /// Time for which the call blocked other writers: the limit of the processor time if it
        /// exceeded that one, otherwise the total time.
        held: Duration,
    },
    /// The guest made too many host calls, or its reply is too large.
    #[error("the guest exceeded a limit: {0}")]
    Limit(String),
    /// The guest returned a value that violates the contract with the host.
    #[error("the guest violated the contract: {0}")]
    Contract(String),
    /// An operator replaced or removed the version, and the call did not end in
    /// time.
    #[error("the version was replaced or removed while the call ran")]
    Replaced,
    /// All instances of the area were busy because of the load.
    #[error("all of the area's instances are busy")]
    Overloaded,
    /// The budget of the call's area or workspace is exhausted.
    #[error(transparent)]
    OverBudget(#[from] budgets::BudgetExceeded),
    /// A database error ended the call: it must run again, or the database is
    /// unavailable.
    #[error(transparent)]
    Store(#[from] assurance_store::Error),
    /// An internal error of the host.
    #[error("internal error of the host: {0:#}")]
    Host(anyhow::Error),
}

impl CallError {
    /// Returns whether the area's code caused the error, not the load, the
    /// database or the host.
    #[must_use]
    pub fn is_areas_fault(&self) -> bool {
        self.fault_kind().is_some()
    }

    /// Returns the kind of the fault, as recordings and metrics name it; `None`
    /// if the area's code did not cause the error.
    pub(super) fn fault_kind(&self) -> Option<&'static str> {
        match self {
            Self::Trap(_) | Self::Panic(_) => Some("trap"),
            Self::Deadline(_) => Some("deadline"),
            Self::CpuTime(_) => Some("cpu_time"),
            Self::OutOfMemory(_) => Some("out_of_memory"),
            Self::Turn { .. } | Self::Limit(_) => Some("limit"),
            Self::Contract(_) => Some("contract"),
            Self::Replaced
            | Self::Overloaded
            | Self::OverBudget(_)
            | Self::Store(_)
            | Self::Host(_) => None,
        }
    }
}
