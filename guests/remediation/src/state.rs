//! States of a program and their transitions.

use area_sdk::prelude::*;

/// State of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProgramState {
    /// Not submitted for review.
    Draft,
    /// Waiting for a reviewer.
    InReview,
    /// Approved, but not started.
    Approved,
    /// In progress; audits verify its steps.
    Active,
    /// Every step is verified.
    Completed,
    /// Refused by the reviewer.
    Rejected,
    /// Cancelled.
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

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::InReview => "in_review",
            Self::Approved => "approved",
            Self::Active => "active",
            Self::Completed => "completed",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether work is left. A finding has at most one open program.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Draft | Self::InReview | Self::Approved | Self::Active)
    }

    /// Whether a user may change this state to `to`. Only audits complete a program.
    pub(crate) fn may_become(self, to: Self) -> bool {
        match to {
            Self::Draft | Self::Completed => false,
            Self::InReview => self == Self::Draft,
            Self::Approved | Self::Rejected => self == Self::InReview,
            Self::Active => self == Self::Approved,
            Self::Cancelled => self.is_open(),
        }
    }

    /// Whether only a reviewer may set this state.
    pub(crate) fn is_verdict(self) -> bool {
        matches!(self, Self::Approved | Self::Rejected)
    }
}

/// State of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StepState {
    /// The next step.
    Ready,
    /// Waiting for earlier steps.
    Blocked,
    /// Verified by an audit.
    Verified,
}

/// Result of a step's predicate in the latest audit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EvaluationStatus {
    /// No audit has evaluated it.
    Pending,
    /// The predicate is true.
    Satisfied,
    /// The predicate is false.
    Unsatisfied,
    /// The predicate could not be evaluated with the audit's facts.
    Error,
}
