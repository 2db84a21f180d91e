//! Error for a questionnaire file that is refused.

use area_sdk::Problem;

/// Reason why the form part `file` is refused, and how to fix the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileRefusal {
    /// Description of what is wrong with the file.
    pub(crate) message: String,
    /// Instruction to fix the file.
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
