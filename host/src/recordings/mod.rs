//! What one call of an area saw and said, kept so that it can be run again
//! somewhere else: its input, every host call with its answer, its outcome.
//!
//! Invariant: no secret is in a recording. Where a call comes upon one, its
//! recording ends: what follows is kept by the calls' names alone, and where a
//! secret was there from the beginning, the input is not kept either
//! ([`Withheld`]).

mod folder;
mod player;
mod recorder;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::domain::time::Timestamp;

pub use folder::Recordings;
pub use player::{Departure, Player, Silence};
pub use recorder::{Recorder, Sealed, frames};

/// The format this version writes, and the only one it reads.
pub const FORMAT: u32 = 1;

/// The WIT package in whose terms calls and values are recorded: the current
/// generation's, whichever the component speaks.
pub const CONTRACT: &str = "assurance:area@0.2.0";

/// One call, as it is in its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// See [`FORMAT`].
    pub format: u32,
    /// See [`CONTRACT`].
    pub contract: String,
    /// When and what for.
    pub about: About,
    /// What the call might use.
    pub limits: Limits,
    /// The argument of the export, as the guest saw it; withheld where a
    /// secret may be in it.
    pub input: Option<Box<RawValue>>,
    /// Lower-case hex of the 32 bytes from which a guest of WASI has its
    /// random numbers; withheld with the input. The host's own seed is in no
    /// recording: secrets are made from it.
    pub wasi_seed: Option<String>,
    /// Every call of a host function whose answer is not the same everywhere,
    /// in order.
    pub calls: Vec<HostCall>,
    /// How it ended.
    pub outcome: Outcome,
    /// From where on there are names only.
    pub withheld: Option<Withheld>,
}

/// Which call was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The request's id, or the job's and its attempt: the file's name too.
    pub id: String,
    /// The moment of the call.
    pub at: Timestamp,
    /// The area's name.
    pub area: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its component, lower-case hex.
    pub digest: String,
    /// The export that was called.
    pub export: Export,
    /// The operation, or the job's kind.
    pub operation: String,
    /// Replies were held against the route's schema.
    pub checked: bool,
}

/// An area's exports that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Export {
    /// A request.
    Handle,
    /// A job or event delivery.
    Run,
}

/// What one call might use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Linear memory, in bytes.
    pub memory_bytes: u64,
    /// Host calls.
    pub host_calls: u32,
    /// Processor time, in milliseconds; nothing: until the deadline.
    pub cpu_ms: Option<u32>,
    /// From its beginning to its end, in milliseconds.
    pub deadline_ms: u64,
    /// The largest reply, in bytes.
    pub reply_bytes: u64,
}

/// One call of a host function.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostCall {
    /// Interface and function, as in `documents.get`.
    pub call: String,
    /// What it was called with.
    pub arguments: Option<Box<RawValue>>,
    /// What it answered; nothing where it is withheld.
    pub answer: Option<Answer>,
}

/// What a host function answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Its result.
    Ok(Box<RawValue>),
    /// Its interface's typed error.
    Error(Box<RawValue>),
    /// Nothing: the call that made it ended there.
    Ended(Fault),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With an answer of the area's own: a reply, a refusal, the end of a job.
    /// Nothing where it is withheld.
    Answered(Option<serde_json::Value>),
    /// By a fault of the area's code.
    Fault(Fault),
}

/// A fault of an area's code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// trap, deadline, cpu_time, out_of_memory, limit or contract.
    pub kind: String,
    /// For a person; withheld where it may quote the guest.
    pub message: Option<String>,
    /// The guest's stack, symbolised, innermost first; empty where there is
    /// none.
    pub frames: Vec<String>,
}

/// Where a recording ends before its call did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withheld {
    /// The first host call of which there is only the name, from 0; nothing:
    /// the input is withheld too.
    pub from: Option<usize>,
    /// For a person.
    pub why: String,
}

/// Why a recording cannot be used; each says the way out.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// No JSON, or another shape.
    #[error("this is not a recording: {0}")]
    Shape(#[from] serde_json::Error),
    /// Written by another version of this program.
    #[error(
        "the recording has format {0}, this version reads {FORMAT}; use the version that wrote it"
    )]
    Format(u64),
    /// Made under another generation of the contract.
    #[error(
        "the recording is of {0}, this version speaks {CONTRACT}; use the version that wrote it"
    )]
    Contract(String),
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// See [`Unreadable`].
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        let value: serde_json::Value = serde_json::from_str(text)?;
        match (value["format"].as_u64(), value["contract"].as_str()) {
            (Some(format), _) if format != u64::from(FORMAT) => Err(Unreadable::Format(format)),
            (_, Some(contract)) if contract != CONTRACT => {
                Err(Unreadable::Contract(contract.to_owned()))
            }
            _ => Ok(serde_json::from_str(text)?),
        }
    }
}

impl Fault {
    /// Whether a clock ended the call: then it is chance where in the code.
    #[must_use]
    pub fn is_by_clock(&self) -> bool {
        matches!(self.kind.as_str(), "deadline" | "cpu_time")
    }
}
