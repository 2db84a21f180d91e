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
pub use player::{HostCallMismatch, Player, ReplayStop};
pub use recorder::{Recorder, WithholdReason, frames};

/// Version of the file format. This release reads and writes only this version.
pub const FORMAT: u32 = 1;

/// WIT package whose types describe the recorded values: the current
/// generation, even if the component uses another.
pub const CONTRACT: &str = "assurance:area@0.3.0";

/// One call, as stored in its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRecording {
    /// Version of the file format; see [`FORMAT`].
    pub format: u32,
    /// WIT package of the recorded values; see [`CONTRACT`].
    pub contract: String,
    /// Metadata of the call.
    pub about: CallMetadata,
    /// Resource limits that the call ran with.
    pub limits: RecordedLimits,
    /// Argument of the export as the guest received it; `None` if withheld
    /// because it may contain a secret.
    pub input: Option<Box<RawValue>>,
    /// Seed of the random numbers of a WASI guest, 32 bytes in lower-case hex;
    /// withheld with the input. The host's own seed is never recorded, because
    /// secrets are derived from it.
    pub wasi_seed: Option<String>,
    /// All calls of host functions that are not deterministic, in order.
    pub calls: Vec<HostCall>,
    /// Outcome of the call.
    pub outcome: RecordedOutcome,
    /// Point from which the recording has only the names of host calls; `None`
    /// if nothing is withheld.
    pub withheld: Option<Redaction>,
}

/// Metadata of a recorded call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallMetadata {
    /// Id of the request, or id and attempt of the job; also the file name.
    pub id: String,
    /// Time of the call.
    pub at: Timestamp,
    /// Name of the area.
    pub area: String,
    /// Version of the area.
    pub version: String,
    /// SHA-256 of the area's component, lower-case hex.
    pub digest: String,
    /// Export that the host called.
    pub export: ExportKind,
    /// Operation id, or the job kind.
    pub operation: String,
    /// Whether replies were validated against the route's schema.
    pub checked: bool,
}

/// An area's exports that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportKind {
    /// The export that handles a request.
    Handle,
    /// The export that runs a job or event delivery.
    Run,
}

/// Resource limits of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedLimits {
    /// Maximum linear memory, in bytes.
    pub memory_bytes: u64,
    /// Maximum number of host calls.
    pub host_calls: u32,
    /// Maximum processor time, in milliseconds; `None` if only the deadline
    /// limits it.
    pub cpu_ms: Option<u32>,
    /// Maximum total time of the call, in milliseconds.
    pub deadline_ms: u64,
    /// Largest reply, in bytes.
    pub reply_bytes: u64,
}

/// One call of a host function.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostCall {
    /// Interface and function, for example `documents.get`.
    pub call: String,
    /// Arguments of the call; `None` if withheld.
    pub arguments: Option<Box<RawValue>>,
    /// Result of the call; `None` if withheld.
    pub answer: Option<HostCallResult>,
}

/// Result of a host function.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostCallResult {
    /// The function succeeded with this result.
    Ok(Box<RawValue>),
    /// The function returned this typed error of its interface.
    Error(Box<RawValue>),
    /// No result: the host function ended the call.
    Ended(RecordedFault),
}

/// Outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedOutcome {
    /// The area returned a reply, a refusal, or the outcome of a job. `None` if
    /// it is withheld.
    Answered(Option<serde_json::Value>),
    /// The area's code failed with this fault.
    Fault(RecordedFault),
}

/// A fault of an area's code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedFault {
    /// `trap`, `deadline`, `cpu_time`, `out_of_memory`, `limit` or `contract`.
    pub kind: String,
    /// Description for a person; `None` if withheld because it may quote the
    /// guest.
    pub message: Option<String>,
    /// The guest's symbolized stack, innermost frame first; empty if there is
    /// none.
    pub frames: Vec<String>,
}

/// Point from which a recording is withheld.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redaction {
    /// Index of the first host call without arguments and result, from 0;
    /// `None` if the input is withheld too.
    pub from: Option<usize>,
    /// Reason for the withholding, for a person.
    pub why: String,
}

/// Errors of reading a recording; each message includes the fix.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The text is not JSON, or has another structure.
    #[error("this is not a recording: {0}")]
    Shape(#[from] serde_json::Error),
    /// The recording was written by a release with another format.
    #[error(
        "the recording has format {0}, this version reads {FORMAT}; use the version that wrote it"
    )]
    Format(u64),
    /// The recording was made with another generation of the contract.
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
    pub fn read(text: &str) -> Result<Self, RecordingError> {
        let value: serde_json::Value = serde_json::from_str(text)?;
        match (value["format"].as_u64(), value["contract"].as_str()) {
            (Some(format), _) if format != u64::from(FORMAT) => Err(RecordingError::Format(format)),
            (_, Some(contract)) if contract != CONTRACT => {
                Err(RecordingError::Contract(contract.to_owned()))
            }
            _ => Ok(serde_json::from_str(text)?),
        }
    }
}

impl RecordedFault {
    /// Returns whether a time limit ended the call; then the position in the
    /// code is not deterministic.
    #[must_use]
    pub fn is_by_clock(&self) -> bool {
        matches!(self.kind.as_str(), "deadline" | "cpu_time")
    }
}
