//! Compares one of several equal results with a stored finding, to decide which finding it is.

use std::cell::OnceCell;

use crate::finding::Finding;
use crate::observation::ResultObservation;
use crate::state::FindingState;

/// Number of degrees of [`EqualResult::difference`].
pub(super) const DIFFERENCES: u32 = 5;

/// A result of a chunk that has the same key as other results or findings.
pub(super) struct EqualResult<'a> {
    /// Index of the result in the chunk.
    pub(super) at: usize,
    /// Whether the result takes the finding with its position in the order of lines, not the one
    /// with the nearest line.
    pub(super) in_order: bool,
    observation: &'a ResultObservation,
    signature: OnceCell<String>,
}

impl<'a> EqualResult<'a> {
    pub(super) fn new(at: usize, observations: &'a [ResultObservation]) -> Self {
        let observation = &observations[at];
        Self { at, in_order: false, observation, signature: OnceCell::new() }
    }

    /// Returns the line of the result; 0 if it has none.
    pub(super) fn line(&self) -> i64 {
        self.observation.first_line().unwrap_or_default()
    }

    pub(super) fn has_path_of(&self, finding: &Finding) -> bool {
        self.observation.first_path() == finding.paths.first()
    }

    fn has_message_of(&self, finding: &Finding) -> bool {
        match finding.message_hash {
            Some(hash) => self.observation.message_hash == Some(hash),
            // Older versions did not store the hash.
            None => finding.signature == *self.signature(),
        }
    }

    fn signature(&self) -> &String {
        self.signature.get_or_init(|| self.observation.sketch.signature())
    }

    /// Whether another result has the same path and message.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let (one, other) = (self.observation, other.observation);
        one.message_hash == other.message_hash && one.first_path() == other.first_path()
    }

    /// Whether a finding has the path and the message of the result.
    pub(super) fn is_alike(&self, finding: &Finding) -> bool {
        self.has_message_of(finding) && self.has_path_of(finding)
    }

    /// Returns how much a finding differs from the result: 0 if path, message and line are equal,
    /// then 1 for path and message, 2 for path and line, 3 for the path, 4 for nothing. `None` if
    /// the finding is gone, a user decided about it, and path or message differ.
    pub(super) fn difference(&self, finding: &Finding) -> Option<u32> {
        let has_line = self.observation.first_line() == finding.first_line();
        let is_open = finding.present || finding.state == FindingState::Verified;
        match (self.has_path_of(finding), self.has_message_of(finding)) {
            (true, true) if has_line && !self.in_order => Some(0),
            (true, true) => Some(1),
            _ if !is_open => None,
            (true, false) if has_line => Some(2),
            (true, false) => Some(3),
            (false, _) => Some(4),
        }
    }

    /// Returns the number of lines between the result and a finding; for a result in order, a
    /// number that is smaller for a finding with a smaller line.
    pub(super) fn distance(&self, finding: &Finding) -> u64 {
        let line = if self.in_order { i64::MIN } else { self.line() };
        finding.first_line().unwrap_or_default().abs_diff(line)
    }
}
