//! Why a file is refused, and how to fix it.

use area_sdk::Problem;

/// Refusal of the form part `file`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileRefusal {
    /// The error.
    pub(crate) message: String,
    /// How to fix it.
    pub(crate) hint: String,
}

impl FileRefusal {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

impl From<FileRefusal> for Problem {
    fn from(refused: FileRefusal) -> Self {
        Self::validation("file", refused.message).hint(refused.hint)
    }
}
