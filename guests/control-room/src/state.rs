//! States of a finding, and the transitions that users and the service may make.

use area_sdk::prelude::*;

/// The state of a finding in its lifecycle.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "State")]
pub(crate) enum FindingState {
    /// An audit found the finding in a scan or an evidence record; no user has decided about it.
    #[default]
    New,
    /// A user confirmed the finding.
    Triaged,
    /// A user started to fix the finding.
    InProgress,
    /// A user reported the finding as fixed; no audit has verified that.
    Remediated,
    /// An audit verified that the finding is no longer reported.
    Verified,
    /// A user, or a suppression in the scan, marked the finding as a false positive.
    FalsePositive,
    /// A user accepted the risk of the finding until a date.
    AcceptedRisk,
    /// The finding is a duplicate of another one.
    Duplicate,
    /// The finding is open again after it was settled or reported as fixed, and waits for a user's
    /// decision.
    Reopened,
}

/// Actor that changes a finding's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Actor {
    /// A signed-in user.
    Person,
    /// The service, after an audit or when the acceptance of a risk ends.
    Service,
}

impl FindingState {
    pub(crate) const ALL: [Self; 9] = [
        Self::New,
        Self::Triaged,
        Self::InProgress,
        Self::Remediated,
        Self::Verified,
        Self::FalsePositive,
        Self::AcceptedRisk,
        Self::Duplicate,
        Self::Reopened,
    ];

    /// Whether a finding in this state is open. A remediated finding is open until an audit
    /// verifies it.
    pub(crate) fn is_open(self) -> bool {
        match self {
            Self::New | Self::Triaged | Self::InProgress | Self::Remediated | Self::Reopened => {
                true
            }
            Self::Verified | Self::FalsePositive | Self::AcceptedRisk | Self::Duplicate => false,
        }
    }

    /// Whether a finding in this state waits for a user's first decision.
    pub(crate) fn awaits_decision(self) -> bool {
        matches!(self, Self::New | Self::Reopened)
    }

    /// Returns the states to which this actor may change a finding that is in this state.
    pub(crate) fn next(self, mover: Actor) -> &'static [Self] {
        match mover {
            Actor::Person => self.next_by_person(),
            Actor::Service => self.next_by_service(),
        }
    }

    fn next_by_person(self) -> &'static [Self] {
        use FindingState::{
            AcceptedRisk, Duplicate, FalsePositive, InProgress, Remediated, Triaged,
        };
        match self {
            Self::New | Self::Reopened => {
                &[Triaged, InProgress, Remediated, FalsePositive, AcceptedRisk, Duplicate]
            }
            Self::Triaged => &[InProgress, Remediated, FalsePositive, AcceptedRisk, Duplicate],
            Self::InProgress => &[Triaged, Remediated, FalsePositive, AcceptedRisk, Duplicate],
            Self::Remediated => &[InProgress, Self::Reopened],
            Self::Verified | Self::FalsePositive | Self::AcceptedRisk | Self::Duplicate => {
                &[Self::Reopened]
            }
        }
    }

    fn next_by_service(self) -> &'static [Self] {
        match self {
            Self::New | Self::Triaged | Self::InProgress | Self::Reopened => {
                &[Self::Verified, Self::FalsePositive]
            }
            Self::Remediated => &[Self::Verified, Self::FalsePositive, Self::Reopened],
            // Scans may report a verified finding again and suppress it.
            Self::Verified => &[Self::FalsePositive, Self::Reopened],
            Self::FalsePositive | Self::AcceptedRisk | Self::Duplicate => &[Self::Reopened],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_audit_verifies_and_nothing_becomes_new_again() {
        for state in FindingState::ALL {
            assert!(!state.next(Actor::Person).contains(&FindingState::Verified), "{state:?}");
            for mover in [Actor::Person, Actor::Service] {
                assert!(!state.next(mover).contains(&FindingState::New), "{state:?}");
                assert!(!state.next(mover).contains(&state), "{state:?}");
            }
        }
    }

    #[test]
    fn what_is_settled_can_only_be_reopened_and_what_is_open_can_be_settled() {
        for state in FindingState::ALL {
            let next = state.next(Actor::Person);
            if state.is_open() {
                assert!(state.next(Actor::Service).contains(&FindingState::Verified), "{state:?}");
            } else {
                assert_eq!(next, [FindingState::Reopened], "{state:?}");
            }
        }
    }
}
