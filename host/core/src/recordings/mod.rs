//! Recordings of calls, for replay elsewhere: the input of a call, every host
//! call with its result, and the outcome.
//!
//! Invariant: a recording contains no secrets. From the first host call that
//! returns a secret, only the names of the calls are recorded. If the input may
//! contain a secret, it is withheld too ([`Redaction`]).

mod folder;
mod player;
mod recorder;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::domain::time::Timestamp;

pub use folder::Recordings;
pub use player::{HostCallMismatch, Player, ReplayStopReason};
pub use recorder::{InputRedactionReason, Recorder, frames};

/// Version of the file format of recordings. This release reads and writes only
/// this version.
pub const FORMAT: u32 = 1;

/// WIT package whose types describe the recorded values: the current
/// generation, even if the component uses another.
pub const CONTRACT: &str = "assurance:area@0.3.0";

/// Recording of one call of an area, as stored in its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRecording {
    /// Version of the recording's file format; see [`FORMAT`].
    pub format: u32,
    /// WIT package of the recorded values; see [`CONTRACT`].
    pub contract: String,
    /// Metadata of the recorded call.
    pub about: CallMetadata,
    /// Resource limits that the recorded call ran with.
    pub limits: RecordedLimits,
    /// The request or job run that the guest received; `None` if withheld
    /// because it may contain a secret.
    pub input: Option<Box<RawValue>>,
    /// Seed of the random numbers of a WASI guest, 32 bytes in lower-case hex;
    /// withheld with the input. The host's own seed is never recorded, because
    /// secrets are derived from it.
    pub wasi_seed: Option<String>,
    /// All calls of host functions that are not deterministic, in order.
    pub calls: Vec<HostCall>,
    /// Outcome of the recorded call.
    pub outcome: RecordedOutcome,
    /// Point from which the recording has only the names of host calls; `None`
    /// if nothing is withheld.
    pub withheld: Option<Redaction>,
}

/// Metadata of a recorded call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallMetadata {
    /// Id of the recorded request, or id and attempt of the recorded job; also
    /// the file name.
    pub id: String,
    /// Time at which the recording began.
    pub at: Timestamp,
    /// Name of the area that was called.
    pub area: String,
    /// Version of the area that was called.
    pub version: String,
    /// SHA-256 of the component that was called, lower-case hex.
    pub digest: String,
    /// The component's export that the host called.
    pub export: ExportKind,
    /// Operation id of the recorded request, or kind of the recorded job.
    pub operation: String,
    /// Whether the area's replies were validated against the route's response
    /// schema, as in development mode.
    pub checked: bool,
}

/// Exports of an area's component whose calls are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportKind {
    /// The export that handles a request.
    Handle,
    /// The export that runs a job or event delivery.
    Run,
}

/// Resource limits that a recorded call ran with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedLimits {
    /// Maximum linear memory of the recorded call, in bytes.
    pub memory_bytes: u64,
    /// Maximum number of host calls of the recorded call.
    pub host_calls: u32,
    /// Maximum processor time of the recorded call, in milliseconds; `None` if
    /// only the deadline limits it.
    pub cpu_ms: Option<u32>,
    /// Maximum total time of the recorded call, in milliseconds.
    pub deadline_ms: u64,
    /// Maximum size of the area's reply, in bytes.
    pub reply_bytes: u64,
}

/// One recorded call of a host function by the guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostCall {
    /// Interface and name of the host function, for example `documents.get`.
    pub call: String,
    /// Arguments of the host call; `None` if withheld.
    pub arguments: Option<Box<RawValue>>,
    /// Result of the host call; `None` if it is withheld, or if the recorded
    /// call ended before the result.
    pub answer: Option<HostCallResult>,
}

/// Recorded result of a call of a host function.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostCallResult {
    /// The host function succeeded with this result.
    Ok(Box<RawValue>),
    /// The host function returned this typed error of its interface.
    Error(Box<RawValue>),
    /// The host function returned no result but ended the guest's call with
    /// this fault.
    Ended(RecordedFault),
}

/// Outcome of a recorded call of an area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedOutcome {
    /// The area returned this reply, refusal or outcome of a job; `None` if it
    /// is withheld.
    Answered(Option<serde_json::Value>),
    /// The area's code failed with this fault.
    Fault(RecordedFault),
}

/// A fault of an area's code, as recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedFault {
    /// Kind of the fault: `trap`, `deadline`, `cpu_time`, `out_of_memory`,
    /// `limit` or `contract`.
    pub kind: String,
    /// Description of the fault, for a person; `None` if withheld because it
    /// may quote the guest.
    pub message: Option<String>,
    /// The guest's symbolized stack at the fault, innermost frame first; empty
    /// if there is none.
    pub frames: Vec<String>,
}

/// Which part of a recording is withheld, because it may contain a secret, and
/// why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redaction {
    /// Index of the first host call that is recorded without arguments and
    /// result, from 0; `None` if the input and all host calls are withheld.
    pub from: Option<usize>,
    /// Reason why a part of the recording is withheld, for a person.
    pub why: String,
}

/// Errors of reading a recording; each message includes the fix.
#[derive(Debug, thiserror::Error)]
pub enum RecordingReadError {
    /// The text is not JSON, or does not have the structure of a recording.
    #[error("this is not a recording: {0}")]
    Shape(#[from] serde_json::Error),
    /// The recording has another version of the file format than this release
    /// reads. Contains that version.
    #[error(
        "the recording has format {0}, this version reads {FORMAT}; use the version that wrote it"
    )]
    Format(u64),
    /// The recording was made with another generation of the contract. Contains
    /// its WIT package.
    #[error(
        "the recording is of {0}, this version speaks {CONTRACT}; use the version that wrote it"
    )]
    Contract(String),
}

impl CallRecording {
    /// Parses a recording.
    ///
    /// # Errors
    /// The text is not a recording of this release's format and WIT package.
    pub fn read(text: &str) -> Result<Self, RecordingReadError> {
        let value: serde_json::Value = serde_json::from_str(text)?;
        match (value["format"].as_u64(), value["contract"].as_str()) {
            (Some(format), _) if format != u64::from(FORMAT) => {
                Err(RecordingReadError::Format(format))
            }
            (_, Some(contract)) if contract != CONTRACT => {
                Err(RecordingReadError::Contract(contract.to_owned()))
            }
            _ => Ok(serde_json::from_str(text)?),
        }
    }
}

impl RecordedFault {
    /// Returns whether a time limit ended the call. The place in the code at
    /// which that happened is not deterministic.
    #[must_use]
    pub fn is_by_clock(&self) -> bool {
        matches!(self.kind.as_str(), "deadline" | "cpu_time")
    }
}
