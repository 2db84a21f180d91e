//! Replays a call from a recording and collects the host calls that differ.

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value as Json;

use super::{CallRecording, HostCall, HostCallResult, Redaction};

/// Host functions whose results only confirm receipt. If a replayed version
/// calls one of them with other arguments, it gets the recorded result and
/// continues.
const RECEIPT_CALLS: [&str; 6] = [
    "documents.apply",
    "events.publish",
    "jobs.enqueue",
    "jobs.report_progress",
    "mail.send",
    "queue.cancel",
];

/// Replays one recorded call: returns the recorded results of its host calls,
/// and collects the host calls that differ.
#[derive(Debug)]
pub struct Player {
    recording: CallRecording,
    state: Mutex<PlayerState>,
}

#[derive(Debug, Default)]
struct PlayerState {
    next: usize,
    mismatches: Vec<HostCallMismatch>,
    stop_reason: Option<ReplayStopReason>,
    frames: Vec<String>,
}

/// A difference between the host calls of a replay and of its recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostCallMismatch {
    /// Index of the differing host call in the replay and in the recording,
    /// from 0.
    pub ordinal: usize,
    /// The recorded host call; `None` if the recording has no more host calls.
    pub recorded: Option<HostCallRequest>,
    /// The host call of the replay; `None` if the replayed handler ended
    /// without it.
    pub replayed: Option<HostCallRequest>,
}

/// Name and arguments of a host call, without its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostCallRequest {
    /// Interface and name of the host function, for example `documents.get`.
    pub call: String,
    /// Arguments of the host call; null if withheld.
    pub arguments: Json,
}

/// Reason why a replay cannot continue: the recording has no result for a host
/// call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayStopReason {
    /// The recording has no host call at this position, or a different one.
    NotRecorded,
    /// The recorded result of the host call is withheld.
    Withheld,
    /// The recorded call ended before its host call returned.
    NoResult,
}

impl Player {
    /// Creates the replay of a recording, from its first host call.
    #[must_use]
    pub fn new(recording: CallRecording) -> Self {
        Self { recording, state: Mutex::default() }
    }

    /// Returns the recording that is replayed.
    #[must_use]
    pub fn recording(&self) -> &CallRecording {
        &self.recording
    }

    /// Returns the recorded seed of the random numbers of a WASI guest; zeros
    /// if it is withheld.
    #[must_use]
    pub fn wasi_seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        let recorded = self.recording.wasi_seed.as_deref().unwrap_or_default();
        // The recorder writes 32 bytes in hex. If the seed is withheld, the
        // result is zeros.
        let _ = hex::decode_to_slice(recorded, &mut seed);
        seed
    }

    /// Returns the recorded result for the replay's next host call, and notes
    /// the call if it differs from the recorded one.
    ///
    /// # Errors
    /// The recording has no result for this host call; the replayed call must
    /// end.
    pub fn answer(
        &self,
        call: &str,
        arguments: &impl Serialize,
    ) -> Result<HostCallResult, ReplayStopReason> {
        let mut state = self.state.lock();
        let answer = self.find(&mut state, call, arguments);
        if let Err(stop_reason) = &answer {
            state.stop_reason = Some(*stop_reason);
        }
        answer
    }

    fn find(
        &self,
        state: &mut PlayerState,
        call: &str,
        arguments: &impl Serialize,
    ) -> Result<HostCallResult, ReplayStopReason> {
        let ordinal = state.next;
        state.next += 1;
        let recorded = self.recording.calls.get(ordinal);
        let same_call = recorded.is_some_and(|recorded| recorded.call == call);
        if same_call && self.is_withheld(ordinal) {
            return Err(ReplayStopReason::Withheld);
        }
        let arguments = serde_json::to_value(arguments).unwrap_or_default();
        let asked = HostCallRequest { call: call.to_owned(), arguments };
        let said = recorded.map(HostCallRequest::of);
        let differs = said.as_ref() != Some(&asked);
        let goes_on =
            same_call && said.as_ref().is_some_and(|said| has_as_many_writes(said, &asked));
        if differs {
            state.mismatches.push(HostCallMismatch {
                ordinal,
                recorded: said,
                replayed: Some(asked),
            });
        }
        match recorded {
            Some(recorded) if !differs || goes_on => {
                recorded.answer.clone().ok_or(ReplayStopReason::NoResult)
            }
            _ => Err(ReplayStopReason::NotRecorded),
        }
    }

    fn is_withheld(&self, ordinal: usize) -> bool {
        let withheld = self.recording.withheld.as_ref();
        withheld.is_some_and(|Redaction { from, .. }| from.is_none_or(|from| ordinal >= from))
    }

    /// Stores the guest's stack at the failure of the replay.
    pub fn record_stack(&self, backtrace: &str) {
        self.state.lock().frames = super::recorder::frames(backtrace);
    }

    /// Returns the guest's stack at the failure of the replay, one text per
    /// frame; empty if it did not fail.
    #[must_use]
    pub fn frames(&self) -> Vec<String> {
        self.state.lock().frames.clone()
    }

    /// Returns why the replay stopped; `None` if it did not.
    #[must_use]
    pub fn stop_reason(&self) -> Option<ReplayStopReason> {
        self.state.lock().stop_reason
    }

    /// Returns the number of host calls of the replay so far, including one
    /// that had no recorded result.
    #[must_use]
    pub fn host_call_count(&self) -> usize {
        self.state.lock().next
    }

    /// Returns all host calls that differ from the recording. If the replay ran
    /// to its end, also the first recorded call that was not made.
    #[must_use]
    pub fn mismatches(&self) -> Vec<HostCallMismatch> {
        let state = self.state.lock();
        let mut mismatches = state.mismatches.clone();
        let left = self.recording.calls.get(state.next).filter(|_| state.stop_reason.is_none());
        mismatches.extend(left.map(|call| HostCallMismatch {
            ordinal: state.next,
            recorded: Some(HostCallRequest::of(call)),
            replayed: None,
        }));
        mismatches
    }
}

impl HostCallRequest {
    fn of(call: &HostCall) -> Self {
        let arguments = call.arguments.as_ref();
        let arguments = arguments.and_then(|raw| serde_json::from_str(raw.get()).ok());
        Self { call: call.call.clone(), arguments: arguments.unwrap_or_default() }
    }
}

/// Returns whether the recorded result also fits a replayed host call with
/// other arguments: the function only confirms receipt, and both calls have the
/// same number of writes.
fn has_as_many_writes(recorded: &HostCallRequest, asked: &HostCallRequest) -> bool {
    let writes =
        |said: &HostCallRequest| said.arguments.get(1).and_then(Json::as_array).map(Vec::len);
    RECEIPT_CALLS.contains(&recorded.call.as_str()) && writes(recorded) == writes(asked)
}
