//! The states of a program, and which may follow which.

use area_sdk::prelude::*;

/// Where a program stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProgramState {
    /// Written.
    Draft,
    /// Waits for a reviewer.
    InReview,
    /// Reviewed, and not begun.
    Approved,
    /// Being carried out; audits verify its steps.
    Active,
    /// Every step is verified.
    Completed,
    /// The reviewer refused it.
    Rejected,
    /// Given up.
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

    /// Is there something still to be done? A finding has one such program at
    /// most.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Draft | Self::InReview | Self::Approved | Self::Active)
    }

    /// May somebody bring a program from this state into that one? Only audits
    /// complete a program.
    pub(crate) fn may_become(self, to: Self) -> bool {
        match to {
            Self::Draft | Self::Completed => false,
            Self::InReview => self == Self::Draft,
            Self::Approved | Self::Rejected => self == Self::InReview,
            Self::Active => self == Self::Approved,
            Self::Cancelled => self.is_open(),
        }
    }

    /// Does it take a reviewer to come into this state?
    pub(crate) fn is_verdict(self) -> bool {
        matches!(self, Self::Approved | Self::Rejected)
    }
}

/// Where a step stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StepState {
    /// The one to be done next.
    Ready,
    /// Waits for those before it.
    Blocked,
    /// An audit found it done.
    Verified,
}

/// What the latest audit made of a step's predicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EvaluationStatus {
    /// No audit has evaluated it.
    Pending,
    /// It holds.
    Satisfied,
    /// It does not.
    Unsatisfied,
    /// The audit's facts do not answer it.
    Error,
}
