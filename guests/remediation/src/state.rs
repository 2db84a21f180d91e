//! States of a remediation program and the allowed changes.

use area_sdk::prelude::*;

/// State of a remediation program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProgramState {
    /// The program was not submitted for review.
    Draft,
    /// The program waits for a reviewer.
    InReview,
    /// A reviewer approved the program; it has not started.
    Approved,
    /// The program is in progress; audits verify its steps.
    Active,
    /// Audits have verified every step of the program.
    Completed,
    /// A reviewer refused the program.
    Rejected,
    /// A user cancelled the program.
    Cancelled,
}

impl ProgramState {
    pub(crate) const ALL: [Self; 7] = [
        Self::Draft,
        Self::InReview,
        Self::Approved,
        Self::Active,
        Self::Completed,
        Self::Rejected,
        Self::Cancelled,
    ];

    /// Whether the program can still be completed. A finding has at most one open program.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Draft | Self::InReview | Self::Approved | Self::Active)
    }

    /// Whether a user may change this state to `to`. Only an audit sets `Completed`.
    pub(crate) fn may_become(self, to: Self) -> bool {
        match to {
            Self::Draft | Self::Completed => false,
            Self::InReview => self == Self::Draft,
            Self::Approved | Self::Rejected => self == Self::InReview,
            Self::Active => self == Self::Approved,
            Self::Cancelled => self.is_open(),
        }
    }

    /// Whether only a reviewer may set this state of a program: approved or rejected.
    pub(crate) fn is_verdict(self) -> bool {
        matches!(self, Self::Approved | Self::Rejected)
    }
}

/// State of a step of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StepState {
    /// The step is the next one to be verified.
    Ready,
    /// The step waits until earlier steps are verified.
    Blocked,
    /// An audit showed that the step is done.
    Verified,
}

/// Result of a step's predicate for the latest audit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EvaluationStatus {
    /// No audit has evaluated the predicate.
    Pending,
    /// The predicate is true for the audit.
    Satisfied,
    /// The predicate is false for the audit.
    Unsatisfied,
    /// The predicate could not be evaluated for the audit.
    Error,
}
