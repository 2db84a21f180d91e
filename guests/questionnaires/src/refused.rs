//! Why a file is refused, and how to fix it.

use area_sdk::Problem;

/// Refusal of the form part `file`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    /// The error.
    pub(crate) message: String,
    /// How to fix it.
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
