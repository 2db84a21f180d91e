//! The seam between the host and whatever runs an area's logic: a component
//! in production, the same logic compiled natively in the benchmark.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;

use super::UnitOfWork;
use crate::budgets;
use crate::domain::area::{JobRun, Problem, Reply, Request};
use crate::domain::job::{Failure, Outcome};
use crate::domain::manifest::Manifest;
use crate::recordings::Player;

/// Runs one area's logic. Each call is isolated from every other.
pub trait AreaCode: Send + Sync + 'static {
    /// Whether there is code to run; not, of a live version that this process
    /// cannot load and knows only by its manifest.
    fn is_loaded(&self) -> bool {
        true
    }

    /// Asks once more what it is; nothing, of code that cannot be asked.
    fn describe(&self) -> BoxFuture<'_, Result<Option<Manifest>, CallError>> {
        Box::pin(async { Ok(None) })
    }

    /// Answers one operation within the deadline.
    fn handle<'a>(
        &'a self,
        unit: UnitOfWork,
        request: &'a Request,
        deadline: Duration,
    ) -> BoxFuture<'a, Ended<Result<Reply, Problem>>>;

    /// Does one job or event delivery within the timeout.
    fn run<'a>(
        &'a self,
        unit: UnitOfWork,
        job: &'a JobRun,
        timeout: Duration,
    ) -> BoxFuture<'a, Ended<Result<Outcome, Failure>>>;

    /// Ends the calls that run now; later ones are left alone. What a call was
    /// about to write is dropped.
    fn end_calls(&self, _which: EndCalls) {}

    /// Answers a recorded request again, its host calls from the recording;
    /// code that is no component cannot.
    fn replay_request<'a>(
        &'a self,
        _player: &'a Arc<Player>,
    ) -> BoxFuture<'a, Result<Result<Reply, Problem>, CallError>> {
        Box::pin(async { Err(no_component()) })
    }

    /// Does a recorded job again, its host calls from the recording; code that
    /// is no component cannot.
    fn replay_run<'a>(
        &'a self,
        _player: &'a Arc<Player>,
    ) -> BoxFuture<'a, Result<Result<Outcome, Failure>, CallError>> {
        Box::pin(async { Err(no_component()) })
    }
}

/// Which calls of a version an operator's action ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndCalls {
    /// Those that keep others from writing, and go on to do so for half a second.
    HoldingTheTurn,
    /// Those that began before the version was replaced or removed. Its later
    /// calls are of a version that came back meanwhile.
    BegunBefore(Instant),
}

fn no_component() -> CallError {
    CallError::Host(anyhow::anyhow!("only a component can be run from a recording"))
}

/// How a call ended, with its unit of work handed back, neither committed nor
/// dropped.
#[derive(Debug)]
pub struct Ended<T> {
    /// What the call read and wanted written; nothing where the call's state
    /// was lost with it.
    pub unit: Option<UnitOfWork>,
    /// The area's own answer, or why there is none.
    pub result: Result<T, CallError>,
}

/// Why a call has no answer, split by blame.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The guest trapped; the report is for the operator.
    #[error("the guest trapped: {0}")]
    Trap(String),
    /// The guest used up its time.
    #[error("the guest ran past its deadline of {0:?}")]
    Deadline(Duration),
    /// The guest used up its processor time.
    #[error("the guest computed for more than {0:?}")]
    CpuTime(Duration),
    /// The guest asked for more memory than it may have.
    #[error("the guest ran out of memory: {0}")]
    OutOfMemory(String),
    /// The guest kept others from writing for too long.
    #[error(
        "the guest kept others from writing for more than {cpu:?} of processor time or {wall:?} \
         in all (runtime.max_turn_cpu_ms, runtime.max_turn_ms); compute before writing and \
         querying what was written, or end the step with `continue`"
    )]
    Turn {
        /// The longest processor time.
        cpu: Duration,
        /// The longest time.
        wall: Duration,
    },
    /// The guest used up its host calls, or its reply is too large.
    #[error("the guest exceeded a limit: {0}")]
    Limit(String),
    /// The guest answered with something the contract does not allow.
    #[error("the guest broke the contract: {0}")]
    Contract(String),
    /// An operator replaced or removed the version, and the call did not end in
    /// time.
    #[error("the version was replaced or removed while the call ran")]
    Replaced,
    /// No instance was free; nobody's fault but the load's.
    #[error("all of the area's instances are busy")]
    Overloaded,
    /// Its area or its workspace has used up what all calls together may.
    #[error(transparent)]
    OverBudget(#[from] budgets::Refused),
    /// The store ended the call: run it again, or it is away.
    #[error(transparent)]
    Store(#[from] crate::store::Error),
    /// The host's own mistake.
    #[error("host fault: {0:#}")]
    Host(anyhow::Error),
}

impl CallError {
    /// Whether the area's own code is to blame: not the load, the database or
    /// the host.
    #[must_use]
    pub fn is_areas_fault(&self) -> bool {
        !matches!(
            self,
            Self::Replaced
                | Self::Overloaded
                | Self::OverBudget(_)
                | Self::Store(_)
                | Self::Host(_)
        )
    }
}
