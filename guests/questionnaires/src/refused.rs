//! Why a file is not imported, and what to do about it.

use area_sdk::Problem;

/// A refusal of the part `file`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    /// What is wrong.
    pub(crate) message: String,
    /// What to mend.
    pub(crate) hint: String,
}

impl Refused {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        Self::validation("file", refused.message).hint(refused.hint)
    }
}
