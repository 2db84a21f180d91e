//! Replays a call from a recording and collects the host calls that differ.

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value as Json;

use super::{CallRecording, HostCall, HostCallResult, Redaction};

/// Host functions whose results only confirm receipt. If the replayed version
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

/// Replays one recorded call: answers its host calls and collects the
/// differences.
#[derive(Debug)]
pub struct Player {
    recording: CallRecording,
    state: Mutex<PlayerState>,
}

#[derive(Debug, Default)]
struct PlayerState {
    next: usize,
    mismatches: Vec<HostCallMismatch>,
    stop_reason: Option<ReplayStop>,
    frames: Vec<String>,
}

/// A host call that differs from the recorded one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostCallMismatch {
    /// Index of the host call, from 0.
    pub ordinal: usize,
    /// The recorded call; `None` if the recording has no more calls.
    pub recorded: Option<HostCallRequest>,
    /// The call of the replay; `None` if the handler ended.
    pub replayed: Option<HostCallRequest>,
}

/// A host call without its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostCallRequest {
    /// Interface and function, for example `documents.get`.
    pub call: String,
    /// Arguments of the call.
    pub arguments: Json,
}

/// Why a recording has no result for a host call. The replay ends there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayStop {
    /// The recording has no such host call.
    NotRecorded,
    /// The result is withheld.
    Withheld,
    /// The recorded call ended before it received the result.
    NoResult,
}

impl Player {
    /// Starts a replay at the beginning of the recording.
    #[must_use]
    pub fn new(recording: CallRecording) -> Self {
        Self { recording, state: Mutex::default() }
    }

    /// Returns the recording that is replayed.
    #[must_use]
    pub fn recording(&self) -> &CallRecording {
        &self.recording
    }

    /// Returns the seed of the random numbers of a WASI guest.
    #[must_use]
    pub fn wasi_seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        let recorded = self.recording.wasi_seed.as_deref().unwrap_or_default();
        // The recorder writes 32 bytes in hex. If the seed is withheld, the
        // result is zeros.
        let _ = hex::decode_to_slice(recorded, &mut seed);
        seed
    }

    /// Returns the recorded result for the next host call.
    ///
    /// # Errors
    /// The recording has no result; the replayed call must end.
    pub fn answer(
        &self,
        call: &str,
        arguments: &impl Serialize,
    ) -> Result<HostCallResult, ReplayStop> {
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
    ) -> Result<HostCallResult, ReplayStop> {
        let ordinal = state.next;
        state.next += 1;
        let recorded = self.recording.calls.get(ordinal);
        let same_call = recorded.is_some_and(|recorded| recorded.call == call);
        if same_call && self.is_withheld(ordinal) {
            return Err(ReplayStop::Withheld);
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
                recorded.answer.clone().ok_or(ReplayStop::NoResult)
            }
            _ => Err(ReplayStop::NotRecorded),
        }
    }

    fn is_withheld(&self, ordinal: usize) -> bool {
        let withheld = self.recording.withheld.as_ref();
        withheld.is_some_and(|Redaction { from, .. }| from.is_none_or(|from| ordinal >= from))
    }

    /// Records the guest's stack at a failure.
    pub fn record_stack(&self, backtrace: &str) {
        self.state.lock().frames = super::recorder::frames(backtrace);
    }

    /// Returns the frames of the failure's stack; empty if there was none.
    #[must_use]
    pub fn frames(&self) -> Vec<String> {
        self.state.lock().frames.clone()
    }

    /// Returns why the replay stopped; `None` if it did not.
    #[must_use]
    pub fn stop_reason(&self) -> Option<ReplayStop> {
        self.state.lock().stop_reason
    }

    /// Returns the number of host calls so far, including one that had no
    /// recorded result.
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

/// Returns whether the recorded result also fits a replayed call with other
/// arguments: the function only confirms receipt, and both calls have the same
/// number of changes.
fn has_as_many_writes(recorded: &HostCallRequest, asked: &HostCallRequest) -> bool {
    let writes =
        |said: &HostCallRequest| said.arguments.get(1).and_then(Json::as_array).map(Vec::len);
    RECEIPT_CALLS.contains(&recorded.call.as_str()) && writes(recorded) == writes(asked)
}
